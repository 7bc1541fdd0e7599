// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/// cuFile's batch API: many reads and writes submitted by one call. Thread-safe.
public final class CuFileBatches {
  // typedef struct CUfileIOParams { CUfileBatchMode_t mode; union { struct { void *devPtr_base;
  //   off_t file_offset; off_t devPtr_offset; size_t size; } batch; } u; CUfileHandle_t fh;
  //   CUfileOpcode_t opcode; void *cookie; } CUfileIOParams_t;
  private static final StructLayout ENTRY =
      MemoryLayout.structLayout(
          JAVA_INT.withName("mode"),
          MemoryLayout.paddingLayout(4),
          ADDRESS.withName("base"),
          JAVA_LONG.withName("file_offset"),
          JAVA_LONG.withName("base_offset"),
          JAVA_LONG.withName("size"),
          ADDRESS.withName("fh"),
          JAVA_INT.withName("opcode"),
          MemoryLayout.paddingLayout(4),
          JAVA_LONG.withName("cookie"));
  // typedef struct CUfileIOEvents { void *cookie; CUfileStatus_t status; size_t ret; }
  //   CUfileIOEvents_t;
  private static final StructLayout EVENT =
      MemoryLayout.structLayout(
          JAVA_LONG.withName("cookie"),
          JAVA_INT.withName("status"),
          MemoryLayout.paddingLayout(4),
          JAVA_LONG.withName("ret"));
  // CUFILE_BATCH
  private static final int BATCH_MODE = 1;
  private static final int NO_FLAGS = 0;

  /// The state of an entry: `CUfileStatus_t`.
  public enum Status {
    WAITING(0x01),
    PENDING(0x02),
    INVALID(0x04),
    CANCELED(0x08),
    COMPLETE(0x10),
    TIMEOUT(0x20),
    FAILED(0x40);

    private final int bit;

    Status(int bit) {
      this.bit = bit;
    }

    static Status of(int bits) {
      for (Status status : values()) {
        if (status.bit == bits) {
          return status;
        }
      }
      return FAILED;
    }
  }

  /// One read or write.
  ///
  /// @param writes whether to write to the file, instead of reading from it
  /// @param base the start of the memory; of registered memory, the start of the registration
  public record Entry(
      CuFileHandle handle,
      boolean writes,
      MemorySegment base,
      long size,
      long fileOffset,
      long baseOffset) {
    public Entry {
      // libcufile refuses a whole submission because of one bad range, or never ends it.
      Objects.checkFromIndexSize(baseOffset, size, base.byteSize());
      if (size == 0 || fileOffset < 0) {
        throw new IndexOutOfBoundsException(size + " bytes at offset " + fileOffset);
      }
    }

    private String operation() {
      return writes ? "cuFile batch write" : "cuFile batch read";
    }
  }

  /// The result of an entry that libcufile is done with.
  ///
  /// @param entry the entry's number in its submission
  /// @param returned a number of bytes, or the code of a failure
  public record Event(int entry, Status status, long returned) {
    /// The number of bytes of `entry` that were moved, which may be fewer than asked for.
    ///
    /// @throws TransferException if the entry failed
    public long count(Entry entry) {
      return switch (status) {
        case COMPLETE ->
            entry
                .handle()
                .count(
                    entry.operation(),
                    returned,
                    entry.size(),
                    entry.fileOffset(),
                    CuFileFunction::requestFailure);
        case CANCELED -> throw failed(entry, new Failure.Cancelled());
        case WAITING, PENDING, INVALID, TIMEOUT, FAILED -> throw failed(entry, failure());
      };
    }

    private Failure failure() {
      return returned == 0
          ? new Failure.CuFile(0, status.name(), "the entry's status, with no code of cuFile")
          : CuFileFunction.requestFailure(returned);
    }

    private static TransferException failed(Entry entry, Failure failure) {
      return new TransferException(
          entry.operation(), entry.handle().at(entry.fileOffset(), entry.size()), failure);
    }
  }

  private final CuFileFunction setUp;
  private final CuFileFunction submit;
  private final CuFileFunction getStatus;
  private final CuFileFunction cancel;
  private final MethodHandle destroy;

  private CuFileBatches(NativeLibrary library) {
    // CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch_idp, unsigned nr)
    setUp = CuFileFunction.require(library, "cuFileBatchIOSetUp", ADDRESS, JAVA_INT);
    // CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned nr,
    //                                   CUfileIOParams_t *iocbp, unsigned int flags)
    submit =
        CuFileFunction.require(
            library, "cuFileBatchIOSubmit", ADDRESS, JAVA_INT, ADDRESS, JAVA_INT);
    // CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp, unsigned min_nr,
    //     unsigned *nr, CUfileIOEvents_t *iocbp, struct timespec *timeout)
    getStatus =
        CuFileFunction.require(
            library, "cuFileBatchIOGetStatus", ADDRESS, JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
    // CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp)
    cancel = CuFileFunction.require(library, "cuFileBatchIOCancel", ADDRESS);
    // void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp)
    destroy =
        library
            .function("cuFileBatchIODestroy", FunctionDescriptor.ofVoid(ADDRESS))
            .orElseThrow(IllegalStateException::new);
  }

  static Availability<CuFileBatches> bind(NativeLibrary library) {
    String first = "cuFileBatchIOSetUp";
    return library.has(first)
        ? Availability.present(new CuFileBatches(library))
        : Availability.absent(library.name() + " has no " + first);
  }

  /// Opens a batch for up to `entries` entries at once.
  public Batch open(int entries) {
    return new Batch(entries);
  }

  /// A batch, for the thread that opened it. The entries' memory must stay allocated until their events have come.
  public final class Batch implements AutoCloseable {
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment id;
    private final MemorySegment entries;
    private final MemorySegment events;
    private final MemorySegment count;
    private final MemorySegment timeout;
    private final int most;
    private boolean broken;
    private boolean closed;

    private Batch(int most) {
      this.most = most;
      MemorySegment handle = arena.allocate(ADDRESS);
      try {
        setUp.call(most + " entries", handle, most);
      } catch (RuntimeException | Error failure) {
        arena.close();
        throw failure;
      }
      id = handle.get(ADDRESS, 0);
      entries = arena.allocate(ENTRY, most);
      events = arena.allocate(EVENT, most);
      count = arena.allocate(JAVA_INT);
      timeout = arena.allocate(2 * Long.BYTES, Long.BYTES);
    }

    /// Submits entries. All events of the last submission must have come. A batch whose submission failed takes no
    /// other, and is never destroyed, since libcufile would end the process.
    public void submit(List<Entry> submitted) {
      Objects.checkIndex(submitted.size() - 1, most);
      if (broken) {
        throw new IllegalStateException("this batch's last submission failed");
      }
      for (int i = 0; i < submitted.size(); i++) {
        Entry one = submitted.get(i);
        MemorySegment to = entries.asSlice(i * ENTRY.byteSize(), ENTRY.byteSize());
        to.set(JAVA_INT, offset(ENTRY, "mode"), BATCH_MODE);
        to.set(ADDRESS, offset(ENTRY, "base"), one.base());
        to.set(JAVA_LONG, offset(ENTRY, "file_offset"), one.fileOffset());
        to.set(JAVA_LONG, offset(ENTRY, "base_offset"), one.baseOffset());
        to.set(JAVA_LONG, offset(ENTRY, "size"), one.size());
        to.set(ADDRESS, offset(ENTRY, "fh"), one.handle().opaque());
        to.set(JAVA_INT, offset(ENTRY, "opcode"), one.writes() ? 1 : 0);
        to.set(JAVA_LONG, offset(ENTRY, "cookie"), i);
      }
      broken = true;
      submit.call(submitted.size() + " entries", id, submitted.size(), entries, NO_FLAGS);
      broken = false;
    }

    /// Waits until at least `least` entries are done or the time is over, and returns the events of all that are done.
    ///
    /// @return possibly fewer than `least`
    public List<Event> status(int least, Duration within) {
      count.set(JAVA_INT, 0, most);
      timeout.set(JAVA_LONG, 0, within.toSeconds());
      timeout.set(JAVA_LONG, Long.BYTES, within.toNanosPart());
      getStatus.call("batch of " + most, id, least, count, events, timeout);
      int came = Math.clamp(count.get(JAVA_INT, 0), 0, most);
      List<Event> all = new ArrayList<>(came);
      for (int i = 0; i < came; i++) {
        MemorySegment from = events.asSlice(i * EVENT.byteSize(), EVENT.byteSize());
        all.add(
            new Event(
                (int) from.get(JAVA_LONG, offset(EVENT, "cookie")),
                Status.of(from.get(JAVA_INT, offset(EVENT, "status"))),
                from.get(JAVA_LONG, offset(EVENT, "ret"))));
      }
      return all;
    }

    /// Asks libcufile not to begin the entries that it has not begun.
    public void cancel() {
      cancel.call("batch of " + most, id);
    }

    @Override
    public void close() {
      if (closed || broken) {
        return;
      }
      closed = true;
      try {
        destroy.invokeExact(id);
      } catch (Throwable thrown) {
        throw NativeLibrary.unchecked(thrown);
      } finally {
        arena.close();
      }
    }
  }

  private static long offset(StructLayout layout, String field) {
    return layout.byteOffset(PathElement.groupElement(field));
  }
}
