/* Stands in for a libtorch of 2.11 or later: has torch_from_blob and no at::fromDLPack. A tensor keeps what it was made
   of. Checks by refusing (2) what the real one would misunderstand. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tensor {
  void *data;
  int64_t ndim;
  int64_t sizes[8];
  int64_t strides[8];
  int32_t dtype;
  int32_t device_type;
  int32_t device_index;
  void (*deleter)(void *, void *);
  void *context;
};

#define NUMBER(name, value) \
  int32_t aoti_torch_##name(void) { return value; }
NUMBER(dtype_uint8, 0)
NUMBER(dtype_int8, 1)
NUMBER(dtype_int16, 2)
NUMBER(dtype_int32, 3)
NUMBER(dtype_int64, 4)
NUMBER(dtype_float16, 5)
NUMBER(dtype_float32, 6)
NUMBER(dtype_float64, 7)
NUMBER(dtype_complex64, 9)
NUMBER(dtype_bool, 11)
NUMBER(dtype_bfloat16, 15)
NUMBER(dtype_uint16, 27)
NUMBER(dtype_uint32, 28)
NUMBER(dtype_uint64, 29)
NUMBER(device_type_cpu, 0)
NUMBER(device_type_cuda, 1)
NUMBER(layout_strided, 77)

int32_t torch_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                        int64_t storage_offset, int32_t dtype, int32_t device_type,
                        int32_t device_index, struct tensor **result, int32_t layout,
                        const uint8_t *opaque, int64_t opaque_size,
                        void (*deleter)(void *, void *), void *context) {
  if (storage_offset != 0 || layout != 77 || opaque != NULL || opaque_size != 0 || ndim > 8) {
    return 2;
  }
  if (device_type == 0 && device_index != -1) {
    return 2;
  }
  /* The real one asks the driver whose an address is, and refuses one of the CPU's. */
  if (device_type == 1 && (uintptr_t)data < 0x1000) {
    return 1;
  }
  if (ndim == 1 && sizes[0] == 13) {
    deleter(data, context);
    return 1;
  }
  struct tensor *made = calloc(1, sizeof *made);
  made->data = data;
  made->ndim = ndim;
  memcpy(made->sizes, sizes, ndim * sizeof *sizes);
  memcpy(made->strides, strides, ndim * sizeof *strides);
  made->dtype = dtype;
  made->device_type = device_type;
  made->device_index = device_index;
  made->deleter = deleter;
  made->context = context;
  *result = made;
  return 0;
}

/* Without memory: only for tensors that have no elements. */
int32_t aoti_torch_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides,
                                 int32_t dtype, int32_t device_type, int32_t device_index,
                                 struct tensor **result) {
  return torch_from_blob((void *)0x1000, ndim, sizes, strides, 0, dtype, device_type, device_index,
                         result, 77, NULL, 0, NULL, NULL);
}

int32_t aoti_torch_copy_(struct tensor *target, struct tensor *source, int32_t non_blocking) {
  return target->ndim == source->ndim ? 0 : 2;
}

int32_t aoti_torch_delete_tensor_object(struct tensor *tensor) {
  if (tensor->deleter != NULL) {
    tensor->deleter(tensor->data, tensor->context);
  }
  free(tensor);
  return 0;
}

#define QUERY(name, type, value) \
  int32_t aoti_torch_get_##name(struct tensor *tensor, type *result) { \
    *result = value; \
    return 0; \
  }
QUERY(data_ptr, void *, tensor->data)
QUERY(dtype, int32_t, tensor->dtype)
QUERY(device_type, int32_t, tensor->device_type)
QUERY(device_index, int32_t, tensor->device_index)
QUERY(dim, int64_t, tensor->ndim)
QUERY(sizes, int64_t *, tensor->sizes)
QUERY(strides, int64_t *, tensor->strides)

/* Looked for, not called here. */
int32_t aoti_torch_new_tensor_handle(void) { return 2; }
