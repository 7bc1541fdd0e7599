/* What older versions lack: switches (libcufile 1.14) and the BAR1 window's size (1.15). */
#include "stub_cufile.h"

bool stub_flags[FLAGS] = {[ALLOW_COMPAT_MODE] = true, [4] = true, [6] = true};

#ifndef STUB_OLD
static int refusal(unsigned int parameter, int sets) {
  return parameter >= FLAGS ? INVALID_VALUE : sets && stub_open() ? DRIVER_ALREADY_OPEN : 0;
}

EXPORT CUfileError_t cuFileSetParameterBool(unsigned int parameter, bool value) {
  CALLED("cuFileSetParameterBool");
  int code = refusal(parameter, 1);
  if (code == 0) {
    stub_flags[parameter] = value;
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterBool(unsigned int parameter, bool *value) {
  CALLED("cuFileGetParameterBool");
  int code = refusal(parameter, 0);
  if (code == 0) {
    *value = stub_flags[parameter];
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetBARSizeInKB(int gpu, size_t *kib) {
  CALLED("cuFileGetBARSizeInKB");
  *kib = gpu == 0 ? 262144 : 1024;
  return stub_status(gpu < 2 ? 0 : INVALID_VALUE);
}
#endif
