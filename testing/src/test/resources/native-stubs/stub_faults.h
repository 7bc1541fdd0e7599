/* Calls counted and failures asked for: what both stub libraries share. */
#ifndef GANTRY_STUB_FAULTS_H
#define GANTRY_STUB_FAULTS_H

#define EXPORT __attribute__((visibility("default")))

struct stub_fault {
  long code;   /* what the function is to return */
  long detail; /* libcufile: cu_err of a status, errno of a read or write */
};

/* Counts a call of the function; 1 if it is to fail now, with what is in *fault. */
int stub_called(const char *function, struct stub_fault *fault);

/* The nth call from now on fails, once; 0 for every call. At load, the environment variable that
 * STUB_FAULTS_VARIABLE names asks for the same as "function:nth:code[:detail],...". */
EXPORT void gantry_stub_fail(const char *function, long nth, long code, long detail);

/* Forgets all faults and counted calls. */
EXPORT void gantry_stub_clear(void);

/* How often the function was called since then. */
EXPORT long gantry_stub_calls(const char *function);

/* The functions that were called since then, in the order of their first calls; NULL past the last. */
EXPORT const char *gantry_stub_function(long number);

/* A library's own figures by their names; -1 for a name that it does not know. */
EXPORT long gantry_stub_count(const char *what);

long stub_environment(const char *variable, long otherwise);

#endif
