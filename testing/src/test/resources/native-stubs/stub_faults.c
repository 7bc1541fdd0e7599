#define _GNU_SOURCE
#include "stub_faults.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FUNCTIONS = 128, MOST_FAULTS = 64, NAME_BYTES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
  char name[NAME_BYTES];
  long calls;
} functions[MOST_FUNCTIONS];

static struct {
  char name[NAME_BYTES];
  long calls_left; /* 0 for every call; -1 for a free entry */
  struct stub_fault fault;
} faults[MOST_FAULTS];

static int fault_count;

int stub_called(const char *function, struct stub_fault *fault) {
  int fails = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_FUNCTIONS; i++) {
    if (functions[i].name[0] == 0) {
      snprintf(functions[i].name, NAME_BYTES, "%s", function);
    }
    if (strcmp(functions[i].name, function) == 0) {
      functions[i].calls++;
      break;
    }
  }
  for (int i = 0; i < fault_count; i++) {
    if (faults[i].calls_left < 0 || strcmp(faults[i].name, function) != 0) {
      continue;
    }
    if (faults[i].calls_left == 0) {
      fails = 1;
    } else if (--faults[i].calls_left == 0) {
      faults[i].calls_left = -1;
      fails = 1;
    }
    if (fails) {
      *fault = faults[i].fault;
      break;
    }
  }
  pthread_mutex_unlock(&lock);
  return fails;
}

void gantry_stub_fail(const char *function, long nth, long code, long detail) {
  pthread_mutex_lock(&lock);
  int place = fault_count;
  for (int i = 0; i < fault_count; i++) {
    if (faults[i].calls_left < 0) {
      place = i;
    }
  }
  if (place == MOST_FAULTS) {
    fprintf(stderr, "stub: too many faults\n");
    abort();
  }
  fault_count = place == fault_count ? fault_count + 1 : fault_count;
  snprintf(faults[place].name, NAME_BYTES, "%s", function);
  faults[place].calls_left = nth;
  faults[place].fault = (struct stub_fault){code, detail};
  pthread_mutex_unlock(&lock);
}

void gantry_stub_clear(void) {
  pthread_mutex_lock(&lock);
  memset(functions, 0, sizeof functions);
  fault_count = 0;
  pthread_mutex_unlock(&lock);
}

long gantry_stub_calls(const char *function) {
  long calls = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_FUNCTIONS; i++) {
    if (strcmp(functions[i].name, function) == 0) {
      calls = functions[i].calls;
    }
  }
  pthread_mutex_unlock(&lock);
  return calls;
}

const char *gantry_stub_function(long number) {
  const char *name = number < MOST_FUNCTIONS ? functions[number].name : "";
  return name[0] ? name : NULL;
}

long stub_environment(const char *variable, long otherwise) {
  const char *value = getenv(variable);
  return value ? atol(value) : otherwise;
}

__attribute__((constructor)) static void read_environment(void) {
  const char *value = getenv(STUB_FAULTS_VARIABLE);
  if (!value) {
    return;
  }
  char *list = strdup(value);
  char *rest = NULL;
  for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
    char name[NAME_BYTES];
    long nth;
    long code;
    long detail = 0;
    if (sscanf(one, "%63[^:]:%ld:%ld:%ld", name, &nth, &code, &detail) < 3) {
      fprintf(stderr, "stub: cannot read '%s' of %s\n", one, STUB_FAULTS_VARIABLE);
      abort();
    }
    gantry_stub_fail(name, nth, code, detail);
  }
  free(list);
}
