/* Reads cufile.json when the driver opens, from the file that CUFILE_ENV_PATH_JSON names at that time. Numbers and
 * booleans are found by the last part of their keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_cufile.h"

static char text[16384];

/* Returns a number, 0 or 1 for a boolean, or -1 if the open driver's file does not have the key. */
EXPORT long gantry_stub_config(const char *key) {
  char quoted[128];
  snprintf(quoted, sizeof quoted, "\"%s\"", key);
  const char *at = strstr(text, quoted);
  if (!at || !(at = strchr(at, ':'))) {
    return -1;
  }
  at += 1 + strspn(at + 1, " ");
  return *at == 't' ? 1 : *at == 'f' ? 0 : strtol(at, NULL, 0);
}

void stub_read_config(void) {
  const char *path = getenv("CUFILE_ENV_PATH_JSON");
  FILE *file = path ? fopen(path, "r") : NULL;
  size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
  text[length] = 0;
  if (file) {
    fclose(file);
  }
#if STUB_VERSION < 1140
  /* Newer versions have a call that takes precedence over the file. */
  stub_flags[ALLOW_COMPAT_MODE] = gantry_stub_config("allow_compat_mode") != 0;
#endif
}
