/* The counts of calls and the faults of calls, which both stub libraries use. */
#ifndef GANTRY_STUB_FAULTS_H
#define GANTRY_STUB_FAULTS_H

#define EXPORT __attribute__((visibility("default")))

struct stub_fault {
  long code;   /* the result of the function */
  long detail; /* for libcufile: the cu_err of a status, or the errno of a read or write */
};

/* Counts a call of the function. Returns 1 if the call must fail, with *fault as its result. */
int stub_called(const char *function, struct stub_fault *fault);

/* Lets the nth call from now on fail once, or every call if nth is 0. The environment variable that
 * STUB_FAULTS_VARIABLE names can set faults at load, as "function:nth:code[:detail],...". */
EXPORT void gantry_stub_fail(const char *function, long nth, long code, long detail);

/* Removes all faults, and resets the counts of calls. */
EXPORT void gantry_stub_clear(void);

/* Returns how often the function was called since gantry_stub_clear. */
EXPORT long gantry_stub_calls(const char *function);

/* Returns the functions that were called since gantry_stub_clear, in the order of their first calls; NULL after the last. */
EXPORT const char *gantry_stub_function(long number);

/* Returns one of the library's own figures by its name; -1 for an unknown name. */
EXPORT long gantry_stub_count(const char *what);

long stub_environment(const char *variable, long otherwise);

#endif
