// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.ipc.OwnFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.slf4j.LoggerFactory;

/// Counts how much of the page cache this user's processes have registered with the CUDA driver.
/// The kernel counts these pages as available, although it cannot reclaim them, and does not tell
/// how many they are.
///
/// The processes share a file of 64-bit entries. Each process locks one entry and writes into it
/// how many bytes it has registered. The kernel drops the lock when the process ends, so an entry
/// that is not locked does not count. Thread-safe.
public final class RegisteredPages {
  private static final int ENTRIES = 512;
  private static final int OWNER_ONLY = 0700;

  /// The pages of all processes of this user that have the same `/dev/shm`; the processes of a
  /// container have their own.
  public static final RegisteredPages OF_USER =
      new RegisteredPages(
          FileCalls.ofPlatform(), Path.of("/dev/shm", "gantry-" + FileCalls.ofPlatform().user()));

  /// The lock to hold while a thread has the file open to read other processes' entries.
  public static final Object LOOKS = new Object();

  private final FileCalls calls;
  private final Path folder;
  private long ownBytes;

  /// The descriptor through which this process's entry is locked.
  private int ownFile;

  /// The index of this process's entry; negative while this process has registered nothing.
  private int ownEntry = -1;

  private boolean told;

  /// @param folder a folder on tmpfs that belongs to this user alone; made when it is needed
  public RegisteredPages(FileCalls calls, Path folder) {
    this.calls = calls;
    this.folder = folder;
  }

  /// Adds to the bytes that this process has registered; `bytes` is negative when they are unregistered.
  public synchronized void add(long bytes) {
    ownBytes += bytes;
    if (ownEntry < 0 && ownBytes > 0) {
      takePlace();
    }
    if (ownEntry >= 0) {
      write(ownFile, ownEntry, ownBytes);
      if (ownBytes == 0) {
        leaveEntry();
      }
    }
  }

  private void leaveEntry() {
    int _ = calls.close(ownFile);
    ownEntry = -1;
  }

  /// The bytes that this process has registered.
  public synchronized long ownBytes() {
    return ownBytes;
  }

  /// The bytes that all of the user's processes have registered; only those of this process if the file cannot be used.
  public synchronized long bytes() {
    return ownBytes + othersBytes();
  }

  /// The bytes that the user's other processes have registered.
  synchronized long othersBytes() {
    synchronized (LOOKS) {
      return readOthersBytes();
    }
  }

  private long readOthersBytes() {
    int opened = openShared();
    if (opened < 0) {
      return 0;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment numbers = arena.allocate(ValueLayout.JAVA_LONG, ENTRIES);
      long read = calls.pread(opened, numbers, numbers.byteSize(), 0);
      long others = 0;
      for (int entry = 0; entry < read / Long.BYTES; entry++) {
        long bytes = numbers.getAtIndex(ValueLayout.JAVA_LONG, entry);
        if (bytes > 0 && entry != ownEntry && isAlive(opened, entry)) {
          others += bytes;
        }
      }
      return others;
    } finally {
      int _ = calls.close(opened);
    }
  }

  /// Opens the file that other processes find under the path. If somebody has deleted the file
  /// that has this process's entry, the process first takes an entry in the new file.
  private int openShared() {
    int opened = open(FileCalls.O_RDWR);
    boolean right = false;
    try {
      right = ownEntry < 0 || hasOwnNumber(opened);
    } finally {
      if (!right && opened >= 0) {
        int _ = calls.close(opened);
      }
    }
    if (right) {
      return opened;
    }
    leaveEntry();
    add(0);
    return open(FileCalls.O_RDWR);
  }

  private boolean hasOwnNumber(int opened) {
    return opened < 0
        ? opened != -Errno.ENOENT.code()
        : calls.stat(ownFile).isSameFile(calls.stat(opened));
  }

  /// Whether the process that locked an entry still runs; sets the entry to 0 if it does not.
  private boolean isAlive(int opened, int entry) {
    int locked = lock(opened, entry, FileCalls.F_WRLCK);
    if (locked < 0) {
      return locked == -Errno.EAGAIN.code();
    }
    write(opened, entry, 0);
    int _ = lock(opened, entry, FileCalls.F_UNLCK);
    return false;
  }

  private void takePlace() {
    int made = calls.mkdir(folder, OWNER_ONLY);
    if (made < 0 && made != -Errno.EEXIST.code()) {
      tell(Errno.failure(-made).describe());
      return;
    }
    int opened = open(FileCalls.O_RDWR | FileCalls.O_CREAT);
    if (opened < 0) {
      return;
    }
    int locked = -Errno.EAGAIN.code();
    for (int entry = 0; entry < ENTRIES && locked == -Errno.EAGAIN.code(); entry++) {
      locked = lock(opened, entry, FileCalls.F_WRLCK);
      if (locked >= 0) {
        ownFile = opened;
        ownEntry = entry;
        return;
      }
    }
    int _ = calls.close(opened);
    tell("no entry can be locked: " + Errno.failure(-locked).describe());
  }

  /// Opens the file. Negative if the file does not exist, or if it belongs to another user, whose
  /// entries could make this process refuse every load.
  private int open(int flags) {
    if (calls.user() < 0) {
      // Only Linux has these locks; elsewhere nothing is registered.
      return -Errno.ENOSYS.code();
    }
    try {
      int opened = OwnFiles.open(calls, folder, FileCalls.O_RDONLY);
      if (opened >= 0) {
        int _ = calls.close(opened);
        opened = OwnFiles.open(calls, folder.resolve("registered"), flags);
      }
      if (opened < 0 && opened != -Errno.ENOENT.code()) {
        tell(Errno.failure(-opened).describe());
      }
      return opened;
    } catch (MisuseException | TransferException e) {
      tell(e.getMessage());
      return -Errno.EACCES.code();
    }
  }

  private void tell(String reason) {
    if (!told) {
      told = true;
      LoggerFactory.getLogger(RegisteredPages.class)
          .warn(
              "what other processes register of the page cache for GPUs counts as available: {}:"
                  + " {}",
              folder,
              reason);
    }
  }

  private int lock(int opened, int entry, int kind) {
    return calls.lock(opened, kind, (long) entry * Long.BYTES, Long.BYTES);
  }

  private void write(int opened, int entry, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment number = arena.allocateFrom(ValueLayout.JAVA_LONG, bytes);
      long written = calls.pwrite(opened, number, Long.BYTES, (long) entry * Long.BYTES);
      if (written != Long.BYTES) {
        tell(written < 0 ? Errno.failure((int) -written).describe() : "it is full");
      }
    }
  }
}
