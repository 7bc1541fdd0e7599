// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.Descriptors;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.Residency;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;

/// A local file, read by [FileCalls] through the page cache, or past it if the file system can.
/// Thread-safe.
public class PosixFile implements LocalFile {
  private final FileCalls calls;
  private final Path path;
  private final CachePolicy policy;
  private final RegularFile file;
  private final SourceFile.Identity identity;
  private final ResidencyProbe probe;
  private final ReadAgain.File readBefore;

  private record Opened(
      RegularFile file,
      SourceFile.Identity identity,
      ResidencyProbe probe,
      ReadAgain.File readBefore) {}

  /// Opens a file.
  ///
  /// @throws TransferException if the file cannot be opened, or is a directory
  public PosixFile(FileCalls calls, Path path, CachePolicy policy) {
    this(calls, path, policy, ReadAgain.OF_PROCESS);
  }

  /// @param readAgain remembers what was read of this file before
  PosixFile(FileCalls calls, Path path, CachePolicy policy, ReadAgain readAgain) {
    this.calls = calls;
    this.path = path;
    this.policy = policy;
    Opened opened =
        Cleanup.orUndo(
            () -> RegularFile.open(calls, path, FileCalls.O_RDONLY, 0, path),
            taken -> looked(calls, path, policy, readAgain, taken),
            RegularFile::close);
    file = opened.file();
    identity = opened.identity();
    probe = opened.probe();
    readBefore = opened.readBefore();
    readBefore.staysOpen();
  }

  private static Opened looked(
      FileCalls calls, Path path, CachePolicy policy, ReadAgain readAgain, RegularFile file) {
    FileCalls.StatResult stat = file.stat();
    Errno.check(stat.status(), "statx", path);
    ResidencyProbe probe = new ResidencyProbe(calls, file.descriptor());
    if (probe.inMemory() && policy != CachePolicy.BUFFERED) {
      // Newer kernels accept O_DIRECT on such files, although they read from memory nevertheless.
      file.refuseDirect("the file system keeps its files in memory");
    } else if (policy != CachePolicy.BUFFERED) {
      int direct = file.openDirect(path, FileCalls.O_RDONLY);
      if (direct == -Errno.EMFILE.code() || direct == -Errno.ENFILE.code()) {
        // The process has too many open files, which does not mean that direct reads are
        // impossible.
        throw new TransferException("open", path.toString(), Errno.failure(-direct));
      }
    }
    SourceFile.Identity identity = SourceFile.Identity.of(stat);
    return new Opened(file, identity, probe, readAgain.opened(identity));
  }

  @Override
  public long size() {
    return identity.size();
  }

  @Override
  public Object identity() {
    return identity;
  }

  @Override
  public Optional<Instant> modified() {
    return Optional.of(Instant.EPOCH.plusNanos(identity.modifiedNanos()));
  }

  /// The identity of the open file on the disk, even if another file has its name now.
  public final SourceFile.Identity onDisk() {
    return identity;
  }

  /// Whether size and modification time of the open file are the same as when it was opened.
  final boolean isUnchanged() {
    FileCalls.StatResult now = calls.stat(file.descriptor());
    Errno.check(now.status(), "statx", path);
    return SourceFile.Identity.of(now).equals(identity);
  }

  @Override
  public Descriptors descriptors() {
    return file.descriptors();
  }

  @Override
  public boolean inMemory() {
    return probe.inMemory();
  }

  @Override
  public long residentBytes() {
    return probe.residentBytes(identity.size());
  }

  /// The policy decides; the kernel is asked only under `BY_RESIDENCY`. A file that is read again
  /// is hot, or will be once this request has read it.
  @Override
  public Residency residency(long offset, long length) {
    if (!file.hasDirect()) {
      return Residency.HOT;
    }
    return switch (policy) {
      case BUFFERED -> Residency.HOT;
      case DIRECT -> Residency.COLD;
      case BY_RESIDENCY ->
          readBefore.isReadAgain()
              ? Residency.HOT
              : probe.of(offset, Math.min(length, identity.size() - offset));
    };
  }

  @Override
  public boolean read(MemorySegment target, long offset, long required, boolean direct) {
    boolean wentDirectly = file.read(target, offset, required, direct);
    if (wentDirectly) {
      readBefore.readDirectly(required);
    }
    return wentDirectly;
  }

  @Override
  public void close() {
    if (file.close()) {
      readBefore.closed();
    }
  }
}
