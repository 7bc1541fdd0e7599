#ifndef STUB_CUDA_PTX_H
#define STUB_CUDA_PTX_H

/* A kernel that was parsed, or null if it has an instruction that is not known. */
struct program;
struct program *stub_parse_ptx(const char *text);
void stub_free_ptx(struct program *program);

/* Runs all threads of a launch one after the other; returns whether all they touched is device memory. */
int stub_run_ptx(const struct program *program, const void *parameter, unsigned int blocks);

#endif
