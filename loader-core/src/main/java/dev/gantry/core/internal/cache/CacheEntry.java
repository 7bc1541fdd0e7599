// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.ipc.OwnFiles;
import dev.gantry.core.internal.store.RegularFile;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// One cached file, which is two files on the disk. `KEY.data` has the blocks at the same offsets
/// as the remote file. `KEY.blocks` has the CRC32C of each block that was written.
///
/// A block is written before its checksum, and neither is synchronised. After a crash of the
/// machine, a checksum may therefore be on the disk without its block; the bytes of the block do
/// not match the checksum then. After all blocks are written, the file is synchronised and sealed:
/// the seal holds the inode and the modification time of `KEY.data`, so a sealed file that was not
/// modified since is read without comparing checksums.
///
/// Locks on ranges of `KEY.blocks` keep processes apart. All processes that use the file hold a
/// shared lock on the first byte, and a process that removes the file locks that byte exclusively.
/// A process that fetches a block locks the block's checksum. The kernel frees the locks of a
/// process that ends. Thread-safe.
final class CacheEntry implements AutoCloseable {
  static final int BLOCK_BYTES = 1 << 20;

  /// The most bytes of a file whose blocks an `int` can count. No disk has as many, but a server may
  /// state any size.
  static final long MAX_BYTES = (long) Integer.MAX_VALUE * BLOCK_BYTES;

  /// The magic number of this layout: "GANTRYC1" in ASCII.
  private static final long MAGIC = 0x3143_5952_544e_4147L;

  /// The header: the magic number, the file's size, the size of a block, and a checksum of these three; then
  /// the seal, which is the inode and the modification time of the data file, and a checksum of these two.
  private static final int HEADER_BYTES = 64;

  private static final int SEAL = 32;
  private static final int ENTRY_BYTES = 8;

  private final FileCalls calls;
  private final Path data;
  private final long size;
  private final RegularFile blocksFile;
  private final RegularFile dataFile;

  private CacheEntry(
      FileCalls calls, Path data, long size, Path blocks, int blocksFile, int dataFile) {
    this.calls = calls;
    this.data = data;
    this.size = size;
    this.blocksFile = new RegularFile(calls, blocks, blocksFile);
    this.dataFile = new RegularFile(calls, data, dataFile);
  }

  static int blocks(long size) {
    return Math.toIntExact(Math.ceilDiv(size, BLOCK_BYTES));
  }

  /// Returns the bytes of disk that a file of this size takes, its checksums included.
  static long cost(long size) {
    return size + HEADER_BYTES + (long) ENTRY_BYTES * blocks(size);
  }

  /// Opens the entry of a file.
  ///
  /// @return null if the entry does not exist, is not usable, or is being removed
  /// @throws MisuseException if another user could have written its files
  static @Nullable CacheEntry open(FileCalls calls, Path blocks, Path data, long size) {
    Optional<CacheEntry> found =
        Cleanup.orUndo(
            () -> openIfThere(calls, blocks),
            blocksFile ->
                blocksFile < 0 ? Optional.empty() : open(calls, blocks, blocksFile, data, size),
            calls::close);
    return found.orElse(null);
  }

  private static Optional<CacheEntry> open(
      FileCalls calls, Path blocks, int blocksFile, Path data, long size) {
    return Cleanup.orUndo(
        () -> openIfThere(calls, data),
        dataFile -> {
          CacheEntry found = new CacheEntry(calls, data, size, blocks, blocksFile, dataFile);
          if (found.isUsable(blocks)) {
            return Optional.of(found);
          }
          found.close();
          return Optional.empty();
        },
        calls::close);
  }

  /// @return negative if there is no such file
  private static int openIfThere(FileCalls calls, Path file) {
    int opened = OwnFiles.open(calls, file, FileCalls.O_RDWR);
    Errno.check(opened, Errno.ENOENT, "open", file);
    return opened;
  }

  private boolean isUsable(Path blocks) {
    int file = blocksFile.descriptor();
    return dataFile.descriptor() >= 0
        && lock(calls, file, FileCalls.F_RDLCK, 0, 1, blocks)
        && isNamed(calls, file, blocks)
        && calls.stat(dataFile.descriptor()).size() == size
        && calls.stat(file).size() == cost(size) - size
        && has(header(size), 0);
  }

  /// Makes an entry without blocks. Neither of its files may exist; the caller holds a lock, so
  /// that no other process makes the entry at the same time.
  ///
  /// @param allocate whether to allocate disk space for the whole file now
  /// @throws TransferException if the disk is full
  static CacheEntry create(FileCalls calls, Path blocks, Path data, long size, boolean allocate) {
    int flags = FileCalls.O_RDWR | FileCalls.O_CREAT | FileCalls.O_EXCL;
    return Cleanup.orUndo(
        () -> Errno.require(OwnFiles.open(calls, data, flags), "open", data),
        dataFile -> {
          int allocated =
              allocate
                  ? FileCalls.retried(() -> calls.fallocate(dataFile, 0, 0, size))
                  : -Errno.EOPNOTSUPP.code();
          if (allocated < 0 && allocated != -Errno.ENOSPC.code()) {
            // This file system cannot allocate space in advance, so the file is sparse.
            allocated = calls.ftruncate(dataFile, size);
          }
          Errno.check(allocated, "fallocate", data);
          return Cleanup.orUndo(
              () -> Errno.require(OwnFiles.open(calls, blocks, flags), "open", blocks),
              blocksFile -> {
                Errno.check(calls.ftruncate(blocksFile, cost(size) - size), "ftruncate", blocks);
                boolean _ = lock(calls, blocksFile, FileCalls.F_RDLCK, 0, 1, blocks);
                CacheEntry made = new CacheEntry(calls, data, size, blocks, blocksFile, dataFile);
                made.write(header(size), 0);
                return made;
              },
              blocksFile -> {
                calls.close(blocksFile);
                calls.unlink(blocks);
              });
        },
        dataFile -> {
          calls.close(dataFile);
          calls.unlink(data);
        });
  }

  /// Removes an entry, unless a process uses it, another user could have written it, or the disk
  /// fails.
  ///
  /// @return whether the entry is gone
  static boolean remove(FileCalls calls, Path blocks, Path data) {
    int blocksFile = -1;
    int dataFile = -1;
    try {
      blocksFile = OwnFiles.open(calls, blocks, FileCalls.O_RDWR);
      dataFile = OwnFiles.open(calls, data, FileCalls.O_RDWR);
      return isOpenOrGone(blocksFile)
          && isOpenOrGone(dataFile)
          && (blocksFile < 0 || lock(calls, blocksFile, FileCalls.F_WRLCK, 0, 1, blocks))
          && (dataFile < 0 || calls.unlink(data) >= 0)
          && (blocksFile < 0 || calls.unlink(blocks) >= 0);
    } catch (MisuseException | TransferException _) {
      return false;
    } finally {
      for (int file : List.of(dataFile, blocksFile)) {
        if (file >= 0) {
          int _ = calls.close(file);
        }
      }
    }
  }

  private static boolean isOpenOrGone(int file) {
    return file >= 0 || file == -Errno.ENOENT.code();
  }

  private static boolean isNamed(FileCalls calls, int file, Path path) {
    FileCalls.StatResult open = calls.stat(file);
    try {
      SourceFile.Identity named = SourceFile.Identity.look(path);
      return named.device() == open.device() && named.inode() == open.inode();
    } catch (TransferException _) {
      return false;
    }
  }

  private static byte[] header(long size) {
    return checked(MAGIC, size, BLOCK_BYTES);
  }

  /// Returns the bytes of some numbers, followed by their checksum.
  private static byte[] checked(long... numbers) {
    ByteBuffer bytes =
        ByteBuffer.allocate((numbers.length + 1) * Long.BYTES).order(ByteOrder.nativeOrder());
    LongStream.of(numbers).forEach(bytes::putLong);
    MemorySegment before = MemorySegment.ofArray(bytes.array()).asSlice(0, bytes.position());
    return bytes.putLong(Crc32c.of(before)).array();
  }

  /// Whether `KEY.blocks` has these bytes at an offset.
  private boolean has(byte[] bytes, long offset) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment found = arena.allocate(bytes.length);
      return read(blocksFile, found, offset) && found.mismatch(MemorySegment.ofArray(bytes)) < 0;
    }
  }

  Path data() {
    return data;
  }

  long size() {
    return size;
  }

  long bytesOf(int block) {
    return Math.min(BLOCK_BYTES, size - (long) block * BLOCK_BYTES);
  }

  /// Returns the checksum of a block, or empty if the block was not written.
  OptionalInt sum(int block) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment entry = arena.allocate(ENTRY_BYTES);
      if (!read(blocksFile, entry, at(block))) {
        return OptionalInt.empty();
      }
      long value = entry.get(JAVA_LONG_UNALIGNED, 0);
      int sum = (int) value;
      return value == entry(block, sum) ? OptionalInt.of(sum) : OptionalInt.empty();
    }
  }

  private static long at(int block) {
    return HEADER_BYTES + (long) ENTRY_BYTES * block;
  }

  /// Makes the entry of a block's checksum. The upper half is computed from the lower half, so
  /// that zeros and half-written entries are not taken for checksums.
  private static long entry(int block, int sum) {
    int check = ~sum ^ (block + 1) * 0x9E3779B9;
    return (long) check << 32 | Integer.toUnsignedLong(sum);
  }

  /// Locks a block, so that no other process fetches it before [#unlock].
  ///
  /// @return false if another process has locked it
  boolean tryLock(int block) {
    return lock(calls, blocksFile.descriptor(), FileCalls.F_WRLCK, at(block), ENTRY_BYTES, data);
  }

  void unlock(int block) {
    int _ = calls.lock(blocksFile.descriptor(), FileCalls.F_UNLCK, at(block), ENTRY_BYTES);
  }

  /// Writes a block, then its checksum.
  ///
  /// @throws TransferException if the disk is full or fails
  void put(int block, MemorySegment bytes) {
    long from = (long) block * BLOCK_BYTES;
    boolean _ = dataFile.write(bytes, from);
    // The kernel begins to write the block to the disk now, so that synchronising the whole file
    // is quick later.
    int _ = calls.startWriteback(dataFile.descriptor(), from, bytes.byteSize());
    byte[] entry = new byte[ENTRY_BYTES];
    MemorySegment.ofArray(entry).set(JAVA_LONG_UNALIGNED, 0, entry(block, Crc32c.of(bytes)));
    write(entry, at(block));
  }

  /// Fills `target` with bytes of blocks that were written.
  ///
  /// @return false if the disk did not return them
  boolean read(MemorySegment target, long offset) {
    return read(dataFile, target, offset);
  }

  /// Whether the file was sealed and was not modified since.
  boolean isSealed() {
    FileCalls.StatResult stat = calls.stat(dataFile.descriptor());
    return has(seal(stat.inode(), stat.modifiedNanos()), SEAL);
  }

  /// Whether the seal has the inode and modification time of an open file.
  boolean isSealedAs(SourceFile.Identity file) {
    return has(seal(file.inode(), file.modifiedNanos()), SEAL);
  }

  /// Synchronises the file, which must be whole, and seals it.
  ///
  /// @throws TransferException if the disk fails
  void seal() {
    dataFile.sync();
    FileCalls.StatResult stat = calls.stat(dataFile.descriptor());
    write(seal(stat.inode(), stat.modifiedNanos()), SEAL);
    blocksFile.sync();
  }

  private static byte[] seal(long inode, long modifiedNanos) {
    return checked(inode, modifiedNanos);
  }

  /// Whether an open file is this entry's data file.
  boolean isDataOf(SourceFile.Identity file) {
    FileCalls.StatResult stat = calls.stat(dataFile.descriptor());
    return stat.status() >= 0 && stat.device() == file.device() && stat.inode() == file.inode();
  }

  private static boolean read(RegularFile file, MemorySegment target, long offset) {
    try {
      boolean _ = file.read(target, offset, target.byteSize(), false);
      return true;
    } catch (TransferException _) {
      return false;
    }
  }

  private void write(byte[] bytes, long offset) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocate(bytes.length);
      boolean _ = blocksFile.write(source.copyFrom(MemorySegment.ofArray(bytes)), offset);
    }
  }

  private static boolean lock(
      FileCalls calls, int file, int kind, long offset, long length, Path path) {
    int result = FileCalls.retried(() -> calls.lock(file, kind, offset, length));
    if (result == -Errno.EAGAIN.code() || result == -Errno.EACCES.code()) {
      return false;
    }
    Errno.check(result, "fcntl", path);
    return true;
  }

  /// Closes the files, which also frees the locks. Errors are ignored, because the checksums show
  /// which blocks were lost.
  @Override
  public void close() {
    boolean _ = dataFile.close();
    boolean _ = blocksFile.close();
  }

  static void closeIfThere(@Nullable CacheEntry entry) {
    if (entry != null) {
      entry.close();
    }
  }
}
