/* The choice of failing calls and their faults. The errors of each function are in its manual page, and a program must
 * survive them. */
#define _GNU_SOURCE
#include "faulty_libc.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FDS = 1 << 16, MOST_ERRNOS = 6, MOST_DELAY_MICROS = 3000 };

static atomic_uchar fds[MOST_FDS];
static atomic_long drawn;
static atomic_long seed;
static atomic_long one_in;
static atomic_long kinds;
static atomic_long counts[FAULT_KINDS];

/* clang-format off */
struct function
    f_open = {"open", {EIO, EMFILE, ENFILE, EACCES, ENOMEM, EINTR}, 0, 0, 0},
    f_close = {"close", {EIO, EINTR}, 0, 0, 0},
    f_read = {"read", {EIO, EINTR, ENOMEM}, 1, 0, 0},
    f_pread = {"pread", {EIO, EINTR, ENOMEM, ESTALE}, 1, 0, 0},
    f_preadv2 = {"preadv2", {EAGAIN, EINTR, EIO, EOPNOTSUPP}, 1, 0, 0},
    f_write = {"write", {EIO, ENOSPC, EINTR, EDQUOT}, 1, 0, 0},
    f_pwrite = {"pwrite", {EIO, ENOSPC, EINTR, EDQUOT}, 1, 0, 0},
    f_fsync = {"fsync", {EIO, ENOSPC, EDQUOT, EINTR}, 0, 0, 0},
    f_ftruncate = {"ftruncate", {EIO, ENOSPC, EINTR}, 0, 0, 0},
    f_fallocate = {"fallocate", {EIO, ENOSPC, EOPNOTSUPP, EINTR}, 0, 0, 0},
    f_rename = {"rename", {EIO, ENOSPC, EACCES, ENOMEM}, 0, 0, 0},
    f_mkdir = {"mkdir", {EIO, ENOSPC, EACCES, ENOMEM}, 0, 0, 0},
    f_unlink = {"unlink", {EIO, EACCES, EBUSY, ENOMEM}, 0, 0, 0},
    f_rmdir = {"rmdir", {EIO, EACCES, EBUSY}, 0, 0, 0},
    f_statx = {"statx", {EIO, ENOMEM}, 0, 0, 0},
    f_mmap = {"mmap", {ENOMEM, EAGAIN}, 0, 0, 0},
    f_lock = {"lock", {ENOLCK, EINTR}, 0, 0, 0},
    f_memfd = {"memfd_create", {EMFILE, ENFILE, ENOMEM}, 0, 0, 0},
    f_socket = {"socket", {EMFILE, ENFILE, ENOBUFS}, 0, 0, 0},
    f_connect = {"connect", {ECONNREFUSED, EINTR, ETIMEDOUT}, 0, 0, 0},
    f_accept = {"accept4", {ECONNABORTED, EMFILE, EINTR, ENOBUFS}, 0, 0, 0},
    f_sendmsg = {"sendmsg", {ECONNRESET, EPIPE, EINTR, ENOBUFS}, 0, 0, 0},
    f_recvmsg = {"recvmsg", {ECONNRESET, EINTR, ENOMEM}, 1, 0, 0},
    f_receive = {"recv", {ECONNRESET, EINTR, ETIMEDOUT}, 1, 0, 0},
    f_send = {"send", {ECONNRESET, EPIPE, EINTR}, 1, 0, 0};


static struct function *const functions[] = {
    &f_open, &f_close, &f_read, &f_pread, &f_preadv2, &f_write, &f_pwrite, &f_fsync, &f_ftruncate, &f_fallocate,
    &f_rename, &f_mkdir, &f_unlink, &f_rmdir, &f_statx, &f_mmap, &f_lock, &f_memfd, &f_socket, &f_connect, &f_accept,
    &f_sendmsg, &f_recvmsg, &f_receive, &f_send};
/* clang-format on */

int is(int fd, enum fd_kind kind) {
  return fd >= 0 && fd < MOST_FDS && fds[fd] == kind;
}

int marked(int fd, enum fd_kind kind) {
  if (fd >= 0 && fd < MOST_FDS) {
    fds[fd] = kind;
  }
  return fd;
}

void duplicated(int from, int to) {
  if (from < MOST_FDS) {
    marked(to, fds[from]);
  }
}

/* Computes Stafford's variant 13 of the 64-bit finalizer. */
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Decides whether a call fails, is short or waits. Returns 1, with errno set, if the call must not be made; may reduce `length`. */
int fails(struct function *function, size_t *length) {
  long rate = one_in;
  if (rate == 0) {
    return 0;
  }
  function->calls++;
  uint64_t draw = mix((uint64_t)seed + (uint64_t)drawn++);
  if (draw % (uint64_t)rate != 0) {
    return 0;
  }
  draw = mix(draw);
  enum fault_kind kind = (enum fault_kind)(draw % FAULT_KINDS);
  if (kind == FAULT_SHORT && !(function->shortens && length && *length > 1)) {
    kind = FAULT_ERRNO;
  }
  if (!(kinds & 1 << kind)) {
    return 0;
  }
  draw /= FAULT_KINDS;
  counts[kind]++;
  function->injected++;
  if (kind == FAULT_DELAY) {
    usleep((useconds_t)(draw % MOST_DELAY_MICROS));
    return 0;
  }
  if (kind == FAULT_SHORT) {
    *length = 1 + draw % (*length - 1);
    return 0;
  }
  int choices = 0;
  while (choices < MOST_ERRNOS && function->errnos[choices]) {
    choices++;
  }
  errno = function->errnos[draw % (uint64_t)choices];
  return 1;
}

void gantry_faults_arm(long new_seed, long new_one_in, long new_kinds) {
  seed = new_seed;
  drawn = 0;
  kinds = new_kinds;
  one_in = new_one_in;
}

long gantry_faults_count(long kind) {
  return kind < FAULT_KINDS ? counts[kind] : counts[0] + counts[1] + counts[2];
}

static struct function *named(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strcmp(functions[i]->name, name) == 0) {
      return functions[i];
    }
  }
  fprintf(stderr, "faulty libc: no function %s\n", name);
  abort();
}

long gantry_faults_calls(const char *function) {
  return named(function)->calls;
}

long gantry_faults_injected(const char *function) {
  return named(function)->injected;
}
