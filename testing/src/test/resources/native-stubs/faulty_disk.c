/* Power cuts, which undo the changes of files and entries that were not synchronised. */
#define _GNU_SOURCE
#include "faulty_libc.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

enum change_kind { DATA, CREATED, RENAMED, REMOVED, FOLDER_MADE, FOLDER_REMOVED };

/* A change that may not be on the disk yet, and the state that undoes it. */
struct change {
  enum change_kind kind;
  dev_t device; /* the device of the file whose data changed, or of the folder whose entry changed */
  ino_t inode;
  int fd; /* the file whose data changed, for reading and writing */
  off_t offset;
  size_t length; /* the length of the old bytes */
  void *bytes;
  off_t size;
  char path[PATH_BYTES];
  char other[PATH_BYTES]; /* the new name */
  char kept[PATH_BYTES];  /* a link to the file that was replaced or removed */
  struct change *before;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct change *last;
static long changes;
static long cut_at;
static long cut_loss;
static int keeps;
static int kept_files;

void disk_lock(void) {
  pthread_mutex_lock(&lock);
}

void disk_unlock(void) {
  pthread_mutex_unlock(&lock);
}

static void forget(struct change *gone) {
  if (gone->fd >= 0) {
    REAL(close)(gone->fd);
  }
  if (gone->kept[0]) {
    REAL(unlink)(gone->kept);
  }
  free(gone->bytes);
  free(gone);
}

static void take_back(struct change *change) {
  switch (change->kind) {
    case DATA:
      if (change->length > 0
          && REAL(pwrite)(change->fd, change->bytes, change->length, change->offset) < 0) {
        perror("faulty disk: pwrite");
      }
      if (REAL(ftruncate)(change->fd, change->size) < 0) {
        perror("faulty disk: ftruncate");
      }
      break;
    case CREATED:
      REAL(unlink)(change->path);
      break;
    case RENAMED:
      REAL(rename)(change->other, change->path);
      if (change->kept[0]) {
        REAL(rename)(change->kept, change->other);
      }
      break;
    case REMOVED:
      REAL(rename)(change->kept, change->path);
      break;
    case FOLDER_MADE:
      REAL(rmdir)(change->path);
      break;
    case FOLDER_REMOVED:
      REAL(mkdir)(change->path, 0700);
      break;
  }
}

static void cut(long loss) {
  for (struct change *one = last; one; one = one->before) {
    if (loss == LOSE_ALL || (loss == LOSE_DATA) == (one->kind == DATA)) {
      take_back(one);
    }
  }
  _exit(9);
}

/* Counts a change, and may cut the power before it. */
static struct change *changed(enum change_kind kind) {
  changes++;
  if (changes == cut_at) {
    cut(cut_loss);
  }
  struct change *change = calloc(1, sizeof *change);
  change->kind = kind;
  change->fd = -1;
  change->before = last;
  last = change;
  return change;
}

void disk_undone(void) {
  if (keeps) {
    struct change *gone = last;
    last = gone->before;
    forget(gone);
  }
}

static void of_folder(struct change *change, const char *path) {
  char copy[PATH_BYTES];
  struct stat found;
  snprintf(copy, sizeof copy, "%s", path);
  if (stat(dirname(copy), &found) == 0) {
    change->device = found.st_dev;
    change->inode = found.st_ino;
  }
}

static void data(int fd, off_t offset, size_t length, int to_the_end) {
  struct stat found;
  char name[64];
  struct change *change = changed(DATA);
  fstat(fd, &found);
  change->device = found.st_dev;
  change->inode = found.st_ino;
  change->size = found.st_size;
  change->offset = offset;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  change->fd = REAL(open)(name, O_RDWR | O_CLOEXEC);
  if (change->fd < 0) {
    perror("faulty disk: open");
    abort();
  }
  size_t there = offset < found.st_size ? (size_t)(found.st_size - offset) : 0;
  if (!to_the_end && there > length) {
    there = length;
  }
  change->bytes = malloc(there + 1);
  ssize_t count = there ? REAL(pread)(change->fd, change->bytes, there, offset) : 0;
  change->length = count < 0 ? 0 : (size_t)count;
}

void disk_write(int fd, off_t offset, size_t length) {
  if (keeps) {
    data(fd, offset, length, 0);
  }
}

void disk_resize(int fd) {
  if (keeps) {
    data(fd, 0, 0, 1);
  }
}

static void entry(enum change_kind kind, const char *path) {
  if (keeps) {
    struct change *change = changed(kind);
    snprintf(change->path, PATH_BYTES, "%s", path);
    of_folder(change, path);
  }
}

void disk_create(const char *path) {
  entry(CREATED, path);
}

void disk_make_folder(const char *path) {
  entry(FOLDER_MADE, path);
}

/* Links the file to a name beside the folder, where no test looks for files. */
static void keep(struct change *change, const char *path) {
  size_t length = strlen(faults_folder());
  snprintf(change->kept, PATH_BYTES, "%.*s.kept-%d", (int)length - 1, faults_folder(), ++kept_files);
  if (link(path, change->kept) != 0) {
    change->kept[0] = 0;
  }
}

void disk_rename(const char *from, const char *to) {
  if (keeps) {
    entry(RENAMED, to);
    snprintf(last->path, PATH_BYTES, "%s", from);
    snprintf(last->other, PATH_BYTES, "%s", to);
    keep(last, to);
  }
}

void disk_remove(const char *path, int folder) {
  if (keeps) {
    entry(folder ? FOLDER_REMOVED : REMOVED, path);
    if (!folder) {
      keep(last, path);
    }
  }
}

void disk_synced(int fd) {
  struct stat found;
  if (!keeps || fstat(fd, &found) != 0) {
    return;
  }
  changes++;
  int folder = S_ISDIR(found.st_mode);
  for (struct change **at = &last; *at;) {
    struct change *one = *at;
    if (one->device == found.st_dev && one->inode == found.st_ino && folder == (one->kind != DATA)) {
      *at = one->before;
      forget(one);
    } else {
      at = &one->before;
    }
  }
}

void gantry_faults_cut(long nth, long loss) {
  disk_lock();
  while (last) {
    disk_undone();
  }
  keeps = 1;
  changes = 0;
  cut_at = nth;
  cut_loss = loss;
  disk_unlock();
}

void gantry_faults_cut_now(long loss) {
  disk_lock();
  cut(loss);
}

long gantry_faults_changes(void) {
  return changes;
}
