/* A C library that fails: preloaded into a JVM, it injects faults into the calls that are made on the files of one
 * folder, on Unix sockets, on memory files and on connections over IP.
 *
 * GANTRY_FAULTS_FOLDER names the folder. Nothing fails until gantry_faults_arm is called. */
#ifndef GANTRY_FAULTY_LIBC_H
#define GANTRY_FAULTY_LIBC_H

#include <stdatomic.h>
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))

enum fault_kind { FAULT_ERRNO, FAULT_SHORT, FAULT_DELAY, FAULT_KINDS };

/* One call in `one_in` gets a fault, as the seed decides; none if this is 0. `kinds` has a bit for each kind. */
EXPORT void gantry_faults_arm(long seed, long one_in, long kinds);

/* How many faults of a kind were injected, or of all kinds for FAULT_KINDS. */
EXPORT long gantry_faults_count(long kind);

/* How many calls of a function could have got a fault, and how many got one. */
EXPORT long gantry_faults_calls(const char *function);
EXPORT long gantry_faults_injected(const char *function);

/* The power is cut before the nth change of the folder from now on: what was not synchronised is lost as `loss` says,
 * and the process ends with status 9. Changes are counted, and what they replace is kept, from this call on; 0 counts
 * only. */
EXPORT void gantry_faults_cut(long nth, long loss);

/* Changes of the folder since gantry_faults_cut. */
EXPORT long gantry_faults_changes(void);

enum loss { LOSE_ALL, LOSE_DATA, LOSE_ENTRIES };

/* Cuts the power now. */
EXPORT void gantry_faults_cut_now(long loss);

/* The C library's function behind one of this library. */
void *real_function(const char *name);
#define REAL(name) ({                                   \
  static __typeof__(&name) found;                       \
  if (!found) {                                         \
    found = (__typeof__(&name))real_function(#name);    \
  }                                                     \
  found;                                                \
})

/* The folder with a slash, "" if there is none. */
const char *faults_folder(void);
int is_in_folder(const char *path);

/* A function whose calls can fail. */
struct function {
  const char *name;
  int errnos[6]; /* up to the first 0 */
  int shortens;
  atomic_long calls;
  atomic_long injected;
};

extern struct function f_open, f_close, f_read, f_pread, f_preadv2, f_write, f_pwrite, f_fsync,
    f_ftruncate, f_fallocate, f_rename, f_mkdir, f_unlink, f_rmdir, f_statx, f_mmap,
    f_lock, f_memfd, f_socket, f_connect, f_accept, f_sendmsg, f_recvmsg, f_receive, f_send;

enum fd_kind { OTHER, IN_FOLDER, SOCKET };

/* Whether a descriptor is of this kind. */
int is(int fd, enum fd_kind kind);

/* Notes a descriptor's kind, and returns it. */
int marked(int fd, enum fd_kind kind);
void duplicated(int from, int to);

/* Lets a call fail, be short or wait: 1 if it is not to be made, with errno set. `length` may become smaller. */
int fails(struct function *function, size_t *length);

/* Changes that are about to be made. Whoever calls these holds the disk's lock, by disk_lock, until the change is made. */
void disk_lock(void);
void disk_unlock(void);
void disk_write(int fd, off_t offset, size_t length);
void disk_resize(int fd);
void disk_create(const char *path);
void disk_make_folder(const char *path);
void disk_rename(const char *from, const char *to);
void disk_remove(const char *path, int folder);
/* The change was not made. */
void disk_undone(void);
void disk_synced(int fd);

#endif
