/* Initialisation, devices, contexts, errors and the stub's figures. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_cuda.h"

enum { DEEPEST_STACK = 32, DRIVER_VERSION = 12060 };

struct context {
  CUdevice device;
  long retained;
};

pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;

static int initialised;
static struct context primaries[MOST_DEVICES];
static __thread CUcontext stack[DEEPEST_STACK];
static __thread int depth;

static int host_count(void) {
  long count = stub_environment("GANTRY_STUB_CUDA_DEVICES", 1);
  return count < 0 ? 0 : count > MOST_DEVICES ? MOST_DEVICES : (int)count;
}

/* Returns the number of the host's GPU that this process sees as a device, or -1. The environment may list some
 * of the GPUs in another order, as CUDA_VISIBLE_DEVICES does. */
int stub_gpu(CUdevice device) {
  const char *visible = getenv("GANTRY_STUB_CUDA_VISIBLE");
  if (!visible) {
    return device < host_count() ? device : -1;
  }
  while (*visible) {
    char *end;
    long gpu = strtol(visible, &end, 10);
    if (end == visible || gpu < 0 || gpu >= host_count()) {
      return -1;
    }
    if (device-- == 0) {
      return (int)gpu;
    }
    visible = *end == ',' ? end + 1 : end;
  }
  return -1;
}

static int device_count(void) {
  int count = 0;
  while (count < MOST_DEVICES && stub_gpu(count) >= 0) {
    count++;
  }
  return count;
}

/* -1 means that the environment decides. */
static long peers_chosen = -1;
static int reaches[MOST_DEVICES][MOST_DEVICES];

static int peers(void) {
  return peers_chosen >= 0 ? peers_chosen != 0 : stub_environment("GANTRY_STUB_CUDA_PEERS", 1) != 0;
}

EXPORT void gantry_stub_peers(long on) {
  pthread_mutex_lock(&stub_lock);
  peers_chosen = on;
  memset(reaches, 0, sizeof reaches);
  pthread_mutex_unlock(&stub_lock);
}

int stub_reaches(CUdevice device, CUdevice peer) { return reaches[device][peer]; }

CUdevice stub_device_of(CUcontext context) { return context->device; }

CUcontext stub_context(void) { return depth > 0 ? stack[depth - 1] : NULL; }

CUcontext stub_primary(CUdevice device) { return &primaries[device]; }

CUdevice stub_device(void) { return stub_context()->device; }

long stub_contexts(void) {
  long retained = 0;
  for (int i = 0; i < MOST_DEVICES; i++) {
    retained += primaries[i].retained;
  }
  return retained;
}

CUresult stub_enter(const char *function, enum needs needs) {
  struct stub_fault fault;
  if (stub_called(function, &fault)) {
    return (CUresult)fault.code;
  }
  if (needs != NEEDS_NOTHING && !initialised) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (needs == NEEDS_CONTEXT && (!stub_context() || stub_context()->retained == 0)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int flags) {
  (void)flags;
  ENTER("cuInit", NEEDS_NOTHING);
  if (device_count() == 0) {
    return CUDA_ERROR_NO_DEVICE;
  }
  initialised = 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
  ENTER("cuDriverGetVersion", NEEDS_NOTHING);
  *version = DRIVER_VERSION;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount", NEEDS_INIT);
  *count = device_count();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER("cuDeviceGet", NEEDS_INIT);
  if (ordinal < 0 || ordinal >= device_count()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *device = ordinal;
  return CUDA_SUCCESS;
}

#define CHECK_DEVICE(device)                         \
  do {                                               \
    if ((device) < 0 || (device) >= device_count()) { \
      return CUDA_ERROR_INVALID_DEVICE;              \
    }                                                \
  } while (0)

EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  ENTER("cuDeviceGetName", NEEDS_INIT);
  CHECK_DEVICE(device);
  snprintf(name, (size_t)bytes, "Stub GPU %d", stub_gpu(device));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device) {
  ENTER("cuDeviceGetPCIBusId", NEEDS_INIT);
  CHECK_DEVICE(device);
  snprintf(id, (size_t)bytes, "0000:%02X:00.0", stub_gpu(device) + 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(unsigned char uuid[16], CUdevice device) {
  ENTER("cuDeviceGetUuid", NEEDS_INIT);
  CHECK_DEVICE(device);
  memset(uuid, stub_gpu(device) + 1, 16);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENTER("cuDeviceTotalMem", NEEDS_INIT);
  CHECK_DEVICE(device);
  *bytes = (size_t)stub_environment("GANTRY_STUB_CUDA_TOTAL", 1L << 30);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  ENTER("cuDeviceGetAttribute", NEEDS_INIT);
  CHECK_DEVICE(device);
  switch (attribute) {
    case 33: /* PCI_BUS_ID */
      *value = stub_gpu(device) + 1;
      break;
    case 40: /* ASYNC_ENGINE_COUNT */
      *value = 2;
      break;
    case 41: /* UNIFIED_ADDRESSING */
      *value = 1;
      break;
    case 75: /* COMPUTE_CAPABILITY_MAJOR */
      *value = 9;
      break;
    case 91: /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
    case 99: /* HOST_REGISTER_SUPPORTED */
    case 113: /* READ_ONLY_HOST_REGISTER_SUPPORTED */
      *value = 1;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  ENTER("cuDeviceCanAccessPeer", NEEDS_INIT);
  CHECK_DEVICE(device);
  CHECK_DEVICE(peer);
  *can = device != peer && peers();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  ENTER("cuCtxEnablePeerAccess", NEEDS_CONTEXT);
  if (!peer || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (peer == stub_context() || !peers()) {
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  }
  int *there = &reaches[stub_device()][peer->device];
  if (*there) {
    return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  }
  *there = 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER("cuDevicePrimaryCtxRetain", NEEDS_INIT);
  CHECK_DEVICE(device);
  primaries[device].device = device;
  primaries[device].retained++;
  *context = &primaries[device];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER("cuDevicePrimaryCtxRelease", NEEDS_INIT);
  CHECK_DEVICE(device);
  if (primaries[device].retained == 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  primaries[device].retained--;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  ENTER("cuDevicePrimaryCtxGetState", NEEDS_INIT);
  CHECK_DEVICE(device);
  *flags = 0;
  *active = primaries[device].retained > 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  (void)flags;
  ENTER("cuDevicePrimaryCtxSetFlags", NEEDS_INIT);
  CHECK_DEVICE(device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER("cuCtxSetCurrent", NEEDS_INIT);
  if (depth > 0) {
    depth--;
  }
  if (context) {
    stack[depth++] = context;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  ENTER("cuCtxGetCurrent", NEEDS_INIT);
  *context = stub_context();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER("cuCtxPushCurrent", NEEDS_INIT);
  if (!context || depth == DEEPEST_STACK) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  ENTER("cuCtxPopCurrent", NEEDS_INIT);
  if (depth == 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  depth--;
  if (context) {
    *context = stack[depth];
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  ENTER("cuCtxGetDevice", NEEDS_CONTEXT);
  *device = stub_device();
  return CUDA_SUCCESS;
}

static const struct {
  CUresult code;
  const char *name;
  const char *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"}};

static CUresult describe(CUresult code, const char **out, int text) {
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    if (errors[i].code == code) {
      *out = text ? errors[i].text : errors[i].name;
      return CUDA_SUCCESS;
    }
  }
  *out = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult code, const char **name) {
  return describe(code, name, 0);
}

EXPORT CUresult cuGetErrorString(CUresult code, const char **text) {
  return describe(code, text, 1);
}

long gantry_stub_count(const char *what) {
  pthread_mutex_lock(&stub_lock);
  long count = strcmp(what, "contexts") == 0 ? stub_contexts() : -1;
  count = count < 0 ? stub_memory_count(what) : count;
  count = count < 0 ? stub_kernel_count(what) : count;
  count = count < 0 ? stub_stream_count(what) : count;
  pthread_mutex_unlock(&stub_lock);
  return count;
}
