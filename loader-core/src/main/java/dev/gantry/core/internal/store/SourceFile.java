package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;

/// One file open for reading, through the page cache and, where the file system can, past it.
///
/// Reads continue after short counts, are retried after `EINTR`, and fail at the end of the file.
/// Thread-safe, but [#close] only when no read is under way.
public final class SourceFile implements AutoCloseable {
  private static final int EINTR = 4;
  private static final int EISDIR = 21;
  private static final int EINVAL = 22;
  private static final int NONE = -1;

  private final FileCalls calls;
  private final Path file;
  private final Identity identity;
  private final int buffered;
  private final int direct;
  private final DirectAlignment alignment;
  private final String directAbsence;
  private final CachePolicy policy;
  private final ResidencyProbe probe;
  private final AtomicBoolean closed = new AtomicBoolean();

  /// By what a file that is opened again is known to be the same, with the same bytes. A change that
  /// keeps all of it goes unnoticed.
  ///
  /// @param device that holds the file: its major number in the upper half, its minor in the lower
  /// @param inode of the file on that device
  /// @param size in bytes
  /// @param modifiedNanos when the file was modified, in nanoseconds since 1970
  public record Identity(long device, long inode, long size, long modifiedNanos) {}

  private SourceFile(FileCalls calls, Path file, CachePolicy policy) {
    this.calls = calls;
    this.file = file;
    this.policy = policy;
    buffered = open(FileCalls.O_RDONLY);
    if (buffered < 0) {
      throw failure("open", Errno.failure(-buffered));
    }
    FileCalls.StatResult stat = calls.stat(buffered);
    if (stat.status() < 0 || stat.directory()) {
      calls.close(buffered);
      throw failure(
          stat.directory() ? "open" : "statx",
          Errno.failure(stat.directory() ? EISDIR : -stat.status()));
    }
    identity = new Identity(stat.device(), stat.inode(), stat.size(), stat.modifiedNanos());
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
      int descriptor = open(FileCalls.O_RDONLY | calls.directFlag());
      if (descriptor == -Errno.EMFILE.code() || descriptor == -Errno.ENFILE.code()) {
        // That says nothing of direct reads.
        calls.close(buffered);
        throw failure("open", Errno.failure(-descriptor));
      }
      direct = Math.max(descriptor, NONE);
      directAbsence =
          descriptor < 0 ? "open with O_DIRECT: " + Errno.failure(-descriptor).describe() : "";
    }
    LiveResources.add(LiveResources.Kind.OPEN_FILES, 1);
  }

  /// @throws TransferException if the file cannot be opened, or is a directory
  public static SourceFile open(FileCalls calls, Path file, CachePolicy policy) {
    return new SourceFile(calls, file, policy);
  }

  public Path file() {
    return file;
  }

  /// In bytes, when the file was opened.
  public long size() {
    return identity.size();
  }

  /// Which file this is, and in which state it was when it was opened: of the open descriptor, not
  /// of what has the file's name now.
  public Identity identity() {
    return identity;
  }

  /// @throws TransferException if the file had fewer bytes than `read` requires when it was opened
  public void checkHolds(Read read) {
    long needed = read.fileOffset() + read.required();
    if (size() < needed) {
      throw failure("open", new Failure.EndOfFile(needed - size()));
    }
  }

  /// The descriptor that reads through the page cache.
  public int bufferedDescriptor() {
    return buffered;
  }

  /// The descriptor that reads past the page cache, or -1 where there is none; see
  /// [#directAbsence].
  public int directDescriptor() {
    return direct;
  }

  /// Why there is no direct descriptor; empty where there is one.
  public String directAbsence() {
    return directAbsence;
  }

  /// For cuFile, which reads by descriptor.
  public Descriptors descriptors() {
    return new Descriptors(file, buffered, direct, directAbsence);
  }

  /// Whether the file system keeps its files in memory, as tmpfs does.
  public boolean inMemory() {
    return probe.inMemory();
  }

  /// How much of the file lies in the page cache, in bytes; -1 where the kernel does not say.
  public long residentBytes() {
    return probe.residentBytes(size());
  }

  /// Whether a read of this range should go past the page cache: the policy and, where it says to
  /// look, the cache decide.
  public boolean prefersDirect(long offset, long length) {
    return residency(offset, length) != Residency.HOT;
  }

  /// What a read of this range should take the bytes for, by the policy and, where it says to look,
  /// by a look. Hot where there are no reads past the page cache.
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

  /// Fills `target` from `offset` on. The file may end after `required` bytes, not before.
  ///
  /// Goes past the page cache where `wantDirect` and the alignment of offset, length and address
  /// allow it.
  ///
  /// @return whether all bytes came past the page cache
  /// @throws TransferException on any failure, and at an end of the file before `required` bytes
  public boolean read(MemorySegment target, long offset, long required, boolean wantDirect) {
    long done = 0;
    boolean directly = wantDirect && direct != NONE && alignment.fits(target, offset);
    boolean wentDirectly = directly;
    while (done < required) {
      MemorySegment rest = target.asSlice(done);
      long count = calls.pread(directly ? direct : buffered, rest, rest.byteSize(), offset + done);
      if (count == -EINTR) {
        continue;
      }
      if (count == -EINVAL && directly) {
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

  private int open(int flags) {
    return FileCalls.retried(() -> calls.open(file, flags, 0));
  }

  private TransferException failure(String operation, Failure failure) {
    return new TransferException(operation, file.toString(), failure);
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
      LiveResources.add(LiveResources.Kind.OPEN_FILES, -1);
    }
  }
}
