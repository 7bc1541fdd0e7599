// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.Descriptors;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.Residency;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;

/// A local file, read by [FileCalls] through the page cache and, where the file system can, past it.
///
/// Reads continue after short counts, are retried after `EINTR`, and fail at the end of the file.
public final class PosixFile implements LocalFile, FileCache.OnDisk {
  private static final int NONE = -1;

  private final FileCalls calls;
  private final Path file;
  private final SourceFile.Identity identity;
  private final int buffered;
  private final int direct;
  private final DirectAlignment alignment;
  private final String directAbsence;
  private final CachePolicy policy;
  private final ResidencyProbe probe;
  private final AtomicBoolean closed = new AtomicBoolean();

  private PosixFile(FileCalls calls, Path file, CachePolicy policy) {
    this.calls = calls;
    this.file = file;
    this.policy = policy;
    RegularFile opened = RegularFile.open(calls, file, FileCalls.O_RDONLY, 0, file);
    FileCalls.StatResult stat = opened.stat();
    buffered = opened.descriptor();
    if (stat.status() < 0) {
      calls.close(buffered);
      throw new TransferException("statx", file.toString(), Errno.failure(-stat.status()));
    }
    identity =
        new SourceFile.Identity(stat.device(), stat.inode(), stat.size(), stat.modifiedNanos());
    alignment = DirectAlignment.of(stat);
    probe = new ResidencyProbe(calls, buffered);
    if (policy == CachePolicy.BUFFERED) {
      direct = NONE;
      directAbsence = "not wanted";
    } else if (probe.inMemory()) {
      // Newer kernels take O_DIRECT there, and read as ever.
      direct = NONE;
      directAbsence = "the file system keeps its files in memory";
    } else {
      int descriptor = opened.openDirect(FileCalls.O_RDONLY);
      if (descriptor == -Errno.EMFILE.code() || descriptor == -Errno.ENFILE.code()) {
        // That says nothing of direct reads.
        calls.close(buffered);
        throw new TransferException("open", file.toString(), Errno.failure(-descriptor));
      }
      direct = Math.max(descriptor, NONE);
      directAbsence =
          descriptor < 0 ? "open with O_DIRECT: " + Errno.failure(-descriptor).describe() : "";
    }
  }

  /// @throws TransferException if the file cannot be opened, or is a directory
  public static PosixFile open(FileCalls calls, Path file, CachePolicy policy) {
    return new PosixFile(calls, file, policy);
  }

  @Override
  public long size() {
    return identity.size();
  }

  /// Of the open descriptor, not of what has the file's name now.
  @Override
  public SourceFile.Identity identity() {
    return identity;
  }

  @Override
  public SourceFile.Identity onDisk() {
    return identity;
  }

  @Override
  public Descriptors descriptors() {
    String absence = calls.descriptorAbsence();
    return absence.isEmpty()
        ? new Descriptors(buffered, direct, "", directAbsence)
        : Descriptors.none(absence);
  }

  @Override
  public boolean inMemory() {
    return probe.inMemory();
  }

  @Override
  public long residentBytes() {
    return probe.residentBytes(size());
  }

  /// By the policy and, where that says to look, by a look.
  @Override
  public Residency residency(long offset, long length) {
    if (direct == NONE) {
      return Residency.HOT;
    }
    return switch (policy) {
      case BUFFERED -> Residency.HOT;
      case DIRECT -> Residency.COLD;
      case BY_RESIDENCY -> probe.of(offset, Math.min(length, size() - offset));
    };
  }

  @Override
  public boolean read(MemorySegment target, long offset, long required, boolean wantDirect) {
    long done = 0;
    boolean directly = wantDirect && direct != NONE && alignment.fits(target, offset);
    boolean wentDirectly = directly;
    while (done < required) {
      MemorySegment rest = target.asSlice(done);
      long count = calls.pread(directly ? direct : buffered, rest, rest.byteSize(), offset + done);
      if (count == -Errno.EINTR.code()) {
        continue;
      }
      if (count == -Errno.EINVAL.code() && directly) {
        // Some file systems take O_DIRECT when a file is opened, and refuse it when it is read.
        directly = false;
        continue;
      }
      if (count < 0) {
        throw failure("pread", offset + done, rest.byteSize(), Errno.failure((int) -count));
      }
      if (count == 0) {
        throw failure(
            "pread", offset + done, rest.byteSize(), new Failure.EndOfFile(required - done));
      }
      done += count;
      wentDirectly &= directly;
      directly = directly && alignment.holdsAfter(count);
    }
    return wentDirectly;
  }

  private TransferException failure(String operation, long offset, long length, Failure failure) {
    return new TransferException(
        operation, file + " offset " + offset + " length " + length, failure);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      // Nothing was written: there is nothing that a failing close could lose.
      calls.close(buffered);
      if (direct != NONE) {
        calls.close(direct);
      }
    }
  }
}
