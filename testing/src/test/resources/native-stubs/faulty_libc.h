/* A C library whose calls fail. Preloaded into a JVM, it injects faults into calls on the files of one folder, on
 * Unix sockets, on memory files and on connections over IP.
 *
 * GANTRY_FAULTS_FOLDER names the folder. No call fails before the call of gantry_faults_arm. */
#ifndef GANTRY_FAULTY_LIBC_H
#define GANTRY_FAULTY_LIBC_H

#include <stdatomic.h>
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))

enum fault_kind { FAULT_ERRNO, FAULT_SHORT, FAULT_DELAY, FAULT_KINDS };

/* Injects a fault into one call in `one_in`, as the seed determines; into none if it is 0. `kinds` has a bit for each
 * kind of fault. */
EXPORT void gantry_faults_arm(long seed, long one_in, long kinds);

/* Returns the number of injected faults of a kind, or of all kinds for FAULT_KINDS. */
EXPORT long gantry_faults_count(long kind);

/* Returns how many calls of a function could have had a fault, and how many had one. */
EXPORT long gantry_faults_calls(const char *function);
EXPORT long gantry_faults_injected(const char *function);

/* Cuts the power before the nth change of the folder from now on: `loss` determines which changes without a
 * synchronisation are lost, and the process ends with status 9. From this call on the library counts changes and keeps
 * the state before them; with 0 it only counts. */
EXPORT void gantry_faults_cut(long nth, long loss);

/* Returns the number of changes of the folder since gantry_faults_cut. */
EXPORT long gantry_faults_changes(void);

enum loss { LOSE_ALL, LOSE_DATA, LOSE_ENTRIES };

/* Cuts the power now. */
EXPORT void gantry_faults_cut_now(long loss);

/* Returns the C library's function of this name. */
void *real_function(const char *name);
#define REAL(name) ({                                   \
  static __typeof__(&name) found;                       \
  if (!found) {                                         \
    found = (__typeof__(&name))real_function(#name);    \
  }                                                     \
  found;                                                \
})

/* Returns the folder with a slash at its end; "" if there is none. */
const char *faults_folder(void);
int is_in_folder(const char *path);

/* A function whose calls may fail. */
struct function {
  const char *name;
  int errnos[6]; /* 0 ends the list */
  int shortens;
  atomic_long calls;
  atomic_long injected;
};

extern struct function f_open, f_close, f_read, f_pread, f_preadv2, f_write, f_pwrite, f_fsync,
    f_ftruncate, f_fallocate, f_rename, f_mkdir, f_unlink, f_rmdir, f_statx, f_mmap,
    f_lock, f_memfd, f_socket, f_connect, f_accept, f_sendmsg, f_recvmsg, f_receive, f_send;

enum fd_kind { OTHER, IN_FOLDER, SOCKET };

/* Returns whether a descriptor is of this kind. */
int is(int fd, enum fd_kind kind);

/* Records the kind of a descriptor, and returns the descriptor. */
int marked(int fd, enum fd_kind kind);
void duplicated(int from, int to);

/* Decides whether a call fails, is short or waits. Returns 1, with errno set, if the call must not be made; may reduce `length`. */
int fails(struct function *function, size_t *length);

/* These functions record changes that are about to be made. The caller holds disk_lock until the change is made. */
void disk_lock(void);
void disk_unlock(void);
void disk_write(int fd, off_t offset, size_t length);
void disk_resize(int fd);
void disk_create(const char *path);
void disk_make_folder(const char *path);
void disk_rename(const char *from, const char *to);
void disk_remove(const char *path, int folder);
/* Removes the record of a change that was not made. */
void disk_undone(void);
void disk_synced(int fd);

#endif
