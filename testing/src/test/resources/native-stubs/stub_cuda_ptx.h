#ifndef STUB_CUDA_PTX_H
#define STUB_CUDA_PTX_H

/* A parsed kernel; the parser returns null for an unknown instruction. */
struct program;
struct program *stub_parse_ptx(const char *text);
void stub_free_ptx(struct program *program);

/* Runs all threads of a launch one after the other; returns whether they accessed only device memory. */
int stub_run_ptx(const struct program *program, const void *parameter, unsigned int blocks);

#endif
