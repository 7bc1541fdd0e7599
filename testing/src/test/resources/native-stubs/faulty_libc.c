/* The functions whose calls may fail. A call without a fault, or on another file, goes to the C library. */
#define _GNU_SOURCE
#include "faulty_libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static void *(*real_dlsym(void))(void *, const char *) {
  static void *(*found)(void *, const char *);
  if (!found) {
    /* dlvsym finds the C library's dlsym, which this library replaces. */
    found = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  }
  if (!found) {
    found = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  }
  if (!found) {
    found = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
  }
  return found;
}

void *real_function(const char *name) {
  return real_dlsym()(RTLD_NEXT, name);
}

const char *faults_folder(void) {
  static char folder[1024];
  static atomic_int known;
  if (!known) {
    const char *given = getenv("GANTRY_FAULTS_FOLDER");
    if (given) {
      snprintf(folder, sizeof folder, "%s/", given);
    }
    known = 1;
  }
  return folder;
}

int is_in_folder(const char *path) {
  const char *folder = faults_folder();
  return folder[0] && strncmp(path, folder, strlen(folder)) == 0;
}

/* Makes a call that changes the disk. `before` records the change, and the record is removed if the call fails. */
#define CHANGE(before, call) ({ \
  disk_lock();                  \
  before;                       \
  __typeof__(call) made = call; \
  int error = errno;            \
  if (made < 0) {               \
    disk_undone();              \
  }                             \
  disk_unlock();                \
  errno = error;                \
  made;                         \
})

static int opened(const char *path, int flags, mode_t mode) {
  if (!is_in_folder(path)) {
    return marked(REAL(open)(path, flags, mode), OTHER);
  }
  if (fails(&f_open, NULL)) {
    return -1;
  }
  if (flags & O_CREAT && access(path, F_OK) != 0) {
    return marked(CHANGE(disk_create(path), REAL(open)(path, flags, mode)), IN_FOLDER);
  }
  return marked(REAL(open)(path, flags, mode), IN_FOLDER);
}

static mode_t mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPENS(name)                               \
  EXPORT int name(const char *path, int flags, ...) { \
    va_list arguments;                            \
    va_start(arguments, flags);                   \
    mode_t mode = mode_of(flags, arguments);      \
    va_end(arguments);                            \
    return opened(path, flags, mode);             \
  }

OPENS(open)
OPENS(open64)

EXPORT int close(int fd) {
  int fail = (is(fd, IN_FOLDER) || is(fd, SOCKET)) && fails(&f_close, NULL);
  int error = errno;
  marked(fd, OTHER);
  int result = REAL(close)(fd);
  if (fail) {
    errno = error;
    return -1;
  }
  return result;
}

EXPORT ssize_t read(int fd, void *buffer, size_t length) {
  if (is(fd, IN_FOLDER) ? fails(&f_read, &length) : is(fd, SOCKET) && fails(&f_receive, &length)) {
    return -1;
  }
  return REAL(read)(fd, buffer, length);
}

#define PREADS(name)                                                           \
  EXPORT ssize_t name(int fd, void *buffer, size_t length, off_t offset) {     \
    if (is(fd, IN_FOLDER) && fails(&f_pread, &length)) {                       \
      return -1;                                                               \
    }                                                                          \
    return REAL(pread)(fd, buffer, length, offset);                            \
  }

PREADS(pread)
PREADS(pread64)

/* Gantry's bindings call this function with one buffer only. */
EXPORT ssize_t preadv2(int fd, const struct iovec *buffers, int count, off_t offset, int flags) {
  struct iovec first = buffers[0];
  if (is(fd, IN_FOLDER) && count == 1 && fails(&f_preadv2, &first.iov_len)) {
    return -1;
  }
  return REAL(preadv2)(fd, count == 1 ? &first : buffers, count, offset, flags);
}

static off_t position(int fd) {
  struct stat found;
  int append = REAL(fcntl)(fd, F_GETFL) & O_APPEND;
  return append && fstat(fd, &found) == 0 ? found.st_size : lseek(fd, 0, SEEK_CUR);
}

EXPORT ssize_t write(int fd, const void *buffer, size_t length) {
  if (is(fd, IN_FOLDER)) {
    if (fails(&f_write, &length)) {
      return -1;
    }
    return CHANGE(disk_write(fd, position(fd), length), REAL(write)(fd, buffer, length));
  }
  if (is(fd, SOCKET) && fails(&f_send, &length)) {
    return -1;
  }
  return REAL(write)(fd, buffer, length);
}

#define PWRITES(name)                                                                             \
  EXPORT ssize_t name(int fd, const void *buffer, size_t length, off_t offset) {                  \
    if (!is(fd, IN_FOLDER)) {                                                                     \
      return REAL(pwrite)(fd, buffer, length, offset);                                            \
    }                                                                                             \
    if (fails(&f_pwrite, &length)) {                                                              \
      return -1;                                                                                  \
    }                                                                                             \
    return CHANGE(disk_write(fd, offset, length), REAL(pwrite)(fd, buffer, length, offset));      \
  }

PWRITES(pwrite)
PWRITES(pwrite64)

#define SYNCS(name)                                    \
  EXPORT int name(int fd) {                            \
    if (!is(fd, IN_FOLDER)) {                          \
      return REAL(name)(fd);                           \
    }                                                  \
    if (fails(&f_fsync, NULL)) {                       \
      return -1;                                       \
    }                                                  \
    disk_lock();                                       \
    int result = REAL(name)(fd);                       \
    if (result == 0) {                                 \
      disk_synced(fd);                                 \
    }                                                  \
    disk_unlock();                                     \
    return result;                                     \
  }

SYNCS(fsync)
SYNCS(fdatasync)

#define TRUNCATES(name)                                                \
  EXPORT int name(int fd, off_t length) {                              \
    if (!is(fd, IN_FOLDER)) {                                          \
      return REAL(ftruncate)(fd, length);                              \
    }                                                                  \
    if (fails(&f_ftruncate, NULL)) {                                   \
      return -1;                                                       \
    }                                                                  \
    return CHANGE(disk_resize(fd), REAL(ftruncate)(fd, length));       \
  }

TRUNCATES(ftruncate)
TRUNCATES(ftruncate64)

EXPORT int fallocate(int fd, int mode, off_t offset, off_t length) {
  if (!is(fd, IN_FOLDER)) {
    return REAL(fallocate)(fd, mode, offset, length);
  }
  if (fails(&f_fallocate, NULL)) {
    return -1;
  }
  return CHANGE(disk_resize(fd), REAL(fallocate)(fd, mode, offset, length));
}

EXPORT int rename(const char *from, const char *to) {
  if (!is_in_folder(from)) {
    return REAL(rename)(from, to);
  }
  return fails(&f_rename, NULL) ? -1 : CHANGE(disk_rename(from, to), REAL(rename)(from, to));
}

EXPORT int mkdir(const char *path, mode_t mode) {
  if (!is_in_folder(path)) {
    return REAL(mkdir)(path, mode);
  }
  return fails(&f_mkdir, NULL) ? -1 : CHANGE(disk_make_folder(path), REAL(mkdir)(path, mode));
}

EXPORT int unlink(const char *path) {
  if (!is_in_folder(path)) {
    return REAL(unlink)(path);
  }
  return fails(&f_unlink, NULL) ? -1 : CHANGE(disk_remove(path, 0), REAL(unlink)(path));
}

EXPORT int rmdir(const char *path) {
  if (!is_in_folder(path)) {
    return REAL(rmdir)(path);
  }
  return fails(&f_rmdir, NULL) ? -1 : CHANGE(disk_remove(path, 1), REAL(rmdir)(path));
}

EXPORT int statx(
    int folder, const char *restrict path, int flags, unsigned int mask, struct statx *restrict into) {
  if (is(folder, IN_FOLDER) && fails(&f_statx, NULL)) {
    return -1;
  }
  return REAL(statx)(folder, path, flags, mask, into);
}

static void *mapped(int own, void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  if (((own && fd < 0) || is(fd, IN_FOLDER)) && fails(&f_mmap, NULL)) {
    return MAP_FAILED;
  }
  return REAL(mmap)(address, length, protection, flags, fd, offset);
}

/* dlsym gives this function to Gantry's bindings only. The JVM's own calls never fail, because that would end the JVM. */
static void *own_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return mapped(1, address, length, protection, flags, fd, offset);
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return mapped(0, address, length, protection, flags, fd, offset);
}

EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  long argument = va_arg(arguments, long);
  va_end(arguments);
  int locks = command == F_OFD_SETLK || command == F_SETLK || command == F_SETLKW;
  /* The release of a lock does not fail on a local disk; the JDK would leave its channel's file open if it did. */
  locks = locks && ((struct flock *)argument)->l_type != F_UNLCK;
  if (locks && is(fd, IN_FOLDER) && fails(&f_lock, NULL)) {
    return -1;
  }
  int result = REAL(fcntl)(fd, command, argument);
  if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) {
    duplicated(fd, result);
  }
  return result;
}

EXPORT int flock(int fd, int operation) {
  int locks = is(fd, IN_FOLDER) && operation != LOCK_UN;
  return locks && fails(&f_lock, NULL) ? -1 : REAL(flock)(fd, operation);
}

EXPORT int memfd_create(const char *name, unsigned int flags) {
  return fails(&f_memfd, NULL) ? -1 : marked(REAL(memfd_create)(name, flags), IN_FOLDER);
}

EXPORT int socket(int domain, int type, int protocol) {
  if (domain != AF_UNIX) {
    return REAL(socket)(domain, type, protocol);
  }
  return fails(&f_socket, NULL) ? -1 : marked(REAL(socket)(domain, type, protocol), SOCKET);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length) {
  int ours = address->sa_family == AF_INET || address->sa_family == AF_INET6 || is(fd, SOCKET);
  if (!ours) {
    return REAL(connect)(fd, address, length);
  }
  if (fails(&f_connect, NULL)) {
    return -1;
  }
  marked(fd, SOCKET);
  return REAL(connect)(fd, address, length);
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
  return fails(&f_accept, NULL) ? -1 : marked(REAL(accept4)(fd, address, length, flags), SOCKET);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  return is(fd, SOCKET) && fails(&f_sendmsg, NULL) ? -1 : REAL(sendmsg)(fd, message, flags);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
  struct iovec first = message->msg_iov[0];
  if (is(fd, SOCKET) && message->msg_iovlen == 1 && fails(&f_recvmsg, &first.iov_len)) {
    return -1;
  }
  struct iovec *all = message->msg_iov;
  message->msg_iov = message->msg_iovlen == 1 ? &first : all;
  ssize_t result = REAL(recvmsg)(fd, message, flags);
  message->msg_iov = all;
  return result;
}

/* Returns this library's functions to Gantry's bindings, which look them up by name. */
EXPORT void *dlsym(void *restrict library, const char *restrict name) {
  static const struct {
    const char *name;
    void *address;
  } ours[] = {
      {"open", open}, {"close", close}, {"pread", pread}, {"pwrite", pwrite}, {"preadv2", preadv2},
      {"ftruncate", ftruncate}, {"fallocate", fallocate}, {"fsync", fsync}, {"fcntl", fcntl}, {"flock", flock},
      {"rename", rename}, {"mkdir", mkdir}, {"unlink", unlink}, {"rmdir", rmdir}, {"statx", statx},
      {"mmap", own_mmap}, {"memfd_create", memfd_create}, {"socket", socket}, {"connect", connect},
      {"accept4", accept4}, {"sendmsg", sendmsg}, {"recvmsg", recvmsg}};
  if (library != RTLD_NEXT) {
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
      if (strcmp(ours[i].name, name) == 0) {
        return ours[i].address;
      }
    }
  }
  return real_dlsym()(library, name);
}
