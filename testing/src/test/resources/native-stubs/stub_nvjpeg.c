/* A libnvjpeg.so.12 without a GPU. The stub reads the size and the components of a JPEG, and decodes every JPEG of a size
 * to the same picture: red grows from left to right, green from top to bottom, and blue is 128. It refuses to decode
 * pictures of fewer than 8 columns. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS, INVALID_PARAMETER = 2, BAD_JPEG = 3, NOT_SUPPORTED = 4, RGBI = 5, INTERPOLATION = 32 };

struct handle { int live; };
struct state { struct handle *handle; };
struct image { unsigned char *channel[4]; size_t pitch[4]; };

EXPORT int nvjpegGetProperty(int type, int *value) {
  *value = type == 0 ? 12 : type == 1 ? 4 : 0;
  return SUCCESS;
}

EXPORT int nvjpegCreateEx(
    int backend, void *device_allocator, void *pinned_allocator, unsigned int flags,
    struct handle **handle) {
  if (backend != 0 || device_allocator || pinned_allocator || flags != INTERPOLATION) {
    return INVALID_PARAMETER;
  }
  *handle = calloc(1, sizeof **handle);
  (*handle)->live = 1;
  return SUCCESS;
}

EXPORT int nvjpegDestroy(struct handle *handle) {
  free(handle);
  return SUCCESS;
}

EXPORT int nvjpegJpegStateCreate(struct handle *handle, struct state **state) {
  *state = calloc(1, sizeof **state);
  (*state)->handle = handle;
  return SUCCESS;
}

EXPORT int nvjpegJpegStateDestroy(struct state *state) {
  free(state);
  return SUCCESS;
}

EXPORT int nvjpegGetImageInfo(
    struct handle *handle, const unsigned char *data, size_t length, int *components,
    int *subsampling, int *widths, int *heights) {
  if (!handle->live || length < 2 || data[0] != 0xFF || data[1] != 0xD8) {
    return BAD_JPEG;
  }
  for (size_t at = 2; at + 10 <= length; at += 2 + (data[at + 2] << 8 | data[at + 3])) {
    if (data[at] != 0xFF) {
      return BAD_JPEG;
    }
    if (data[at + 1] >= 0xC0 && data[at + 1] <= 0xC2) {
      *components = data[at + 9];
      *subsampling = 0;
      for (int i = 0; i < 4; i++) {
        heights[i] = i < *components ? data[at + 5] << 8 | data[at + 6] : 0;
        widths[i] = i < *components ? data[at + 7] << 8 | data[at + 8] : 0;
      }
      return SUCCESS;
    }
  }
  return BAD_JPEG;
}

EXPORT int nvjpegDecode(
    struct handle *handle, struct state *state, const unsigned char *data, size_t length,
    int format, struct image *target, void *stream) {
  int components, subsampling, widths[4], heights[4];
  int known =
      nvjpegGetImageInfo(handle, data, length, &components, &subsampling, widths, heights);
  if (known != SUCCESS || state->handle != handle || format != RGBI || !stream) {
    return known != SUCCESS ? known : INVALID_PARAMETER;
  }
  if (widths[0] < 8) {
    return NOT_SUPPORTED;
  }
  for (int y = 0; y < heights[0]; y++) {
    for (int x = 0; x < widths[0]; x++) {
      unsigned char *pixel = target->channel[0] + y * target->pitch[0] + 3 * x;
      pixel[0] = (unsigned char)(255 * x / (widths[0] - 1));
      pixel[1] = (unsigned char)(255 * y / (heights[0] - 1));
      pixel[2] = 128;
    }
  }
  return SUCCESS;
}
