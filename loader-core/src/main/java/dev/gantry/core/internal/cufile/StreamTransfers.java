// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.natives.CuFileStreams;
import dev.gantry.core.internal.natives.CuFileStreams.Fixed;
import dev.gantry.core.internal.natives.CuFileStreams.Parameters;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Reads and writes that a CUDA stream runs in its order, after the work that was queued on it before
/// and before the work that is queued on it later.
///
/// The result of a request is known when the stream has passed it. [#check] and [#finish] wait for that, and
/// look at all results so far. This owns the stream's registration with cuFile, not the stream. If cuFile fails
/// a request on a registered stream by EIO, the stream is deregistered and then used without a registration.
///
/// In compatibility mode libcufile's streams fail requests that are not aligned to 4 KiB, and end the process when several
/// threads use them (1.15.1), so nothing is queued on them there. Thread-safe.
public final class StreamTransfers implements AutoCloseable {
  /// How many requests may be queued at once; each has memory for its parameters and its result. When none is
  /// free, a new request first waits until the stream has passed all others; a short count among them is a
  /// failure then.
  private static final int MAX_REQUESTS = 128;

  private static final Logger LOG = LoggerFactory.getLogger(StreamTransfers.class);

  /// The result of a request that fails by EIO. On a stream that is not registered, EIO has another cause.
  private static final long REFUSED = -5;

  private final CuFileStreams streams;
  private final CudaContext context;
  private final CudaDriver.Stream stream;
  private final CudaDriver.Event passed;
  private final Arena arena = Arena.ofShared();
  private final Deque<Parameters> unused = new ArrayDeque<>();
  private final List<Request> queued = new ArrayList<>();
  private @Nullable RuntimeException failed;
  private boolean registered;
  private boolean closed;

  private record Request(
      CuFileHandle handle,
      boolean writes,
      MemorySegment base,
      long required,
      Parameters parameters,
      boolean registered) {
    String operation() {
      return writes ? "cuFileWriteAsync" : "cuFileReadAsync";
    }

    /// @param missing how many bytes are missing
    /// @param at the file offset of the first of them
    TransferException ended(long missing, long at) {
      return new TransferException(
          operation(),
          handle.file() + " offset " + at,
          writes ? new Failure.NothingWritten(missing) : new Failure.EndOfFile(missing));
    }
  }

  /// @param registers whether to register the stream with cuFile, so that queueing a request does not
  ///     wait for the stream. In compatibility mode cuFile fails requests on registered streams
  public StreamTransfers(
      CuFileStreams streams, CudaContext context, CudaDriver.Stream stream, boolean registers) {
    this.streams = streams;
    this.context = context;
    this.stream = stream;
    MemorySegment blocks = arena.allocate(MAX_REQUESTS * Parameters.BYTES, Long.BYTES);
    for (int i = 0; i < MAX_REQUESTS; i++) {
      unused.add(new Parameters(blocks.asSlice(i * Parameters.BYTES, Parameters.BYTES)));
    }
    this.passed = Cleanup.orUndo(() -> entered(() -> open(registers)), arena::close);
    this.registered = registers;
  }

  private CudaDriver.Event open(boolean registers) {
    CudaDriver.Event event = context.driver().createBlockingSyncEvent();
    return Cleanup.orUndo(
        () -> {
          if (registers) {
            // The parameters of a request do not change after it is queued.
            streams.register(stream, Set.of(Fixed.BUFFER_OFFSET, Fixed.FILE_OFFSET, Fixed.SIZE));
          }
          return event;
        },
        () -> context.driver().destroy(event));
  }

  /// Queues a read of up to `length` bytes.
  ///
  /// @param base the memory; if it is registered, exactly the region that was registered. It must stay until
  ///     the stream has passed the request
  /// @param required how many bytes must be read: fewer than `length` where the file may end
  public void read(
      CuFileHandle handle,
      MemorySegment base,
      long baseOffset,
      long fileOffset,
      long length,
      long required) {
    Objects.checkIndex(required - 1, length);
    queue(handle, false, base, baseOffset, fileOffset, length, required);
  }

  /// Queues a write. The bytes are durable only after fsync.
  public void write(
      CuFileHandle handle, MemorySegment base, long baseOffset, long fileOffset, long length) {
    queue(handle, true, base, baseOffset, fileOffset, length, length);
  }

  private synchronized void queue(
      CuFileHandle handle,
      boolean writes,
      MemorySegment base,
      long baseOffset,
      long fileOffset,
      long length,
      long required) {
    if (unused.isEmpty()) {
      // Only waits: if an earlier request failed, the next check reports that.
      await();
    }
    Parameters parameters = unused.remove();
    parameters.set(length, fileOffset, baseOffset);
    submit(new Request(handle, writes, base, required, parameters, registered));
  }

  private void submit(Request request) {
    Cleanup.orUndo(
        () -> {
          try (var _ = context.enter()) {
            if (request.writes()) {
              streams.write(request.handle(), request.base(), request.parameters(), stream);
            } else {
              streams.read(request.handle(), request.base(), request.parameters(), stream);
            }
          }
          queued.add(request);
        },
        () -> unused.add(request.parameters()));
  }

  /// Waits until the stream has passed all requests, and looks at their results. A short count is a failure,
  /// since work that was queued behind the request has seen memory that was not filled.
  ///
  /// @throws TransferException the first failure; all requests have ended then
  public synchronized void check() {
    throwEarlier();
    settle(false);
  }

  /// Waits until the stream has passed all requests, so that their handles and memory may be given up. The next
  /// [#check] reports what failed.
  public synchronized void await() {
    try {
      settle(false);
    } catch (RuntimeException e) {
      failed = failed == null ? e : failed;
    }
  }

  /// Waits until the stream has passed all requests, and queues the rest of short ones again until all is done.
  /// This is for callers who have queued nothing behind the requests.
  ///
  /// @throws TransferException the first failure; all requests have ended then
  public synchronized void finish() {
    throwEarlier();
    settle(true);
  }

  private void throwEarlier() {
    RuntimeException earlier = failed;
    if (earlier != null) {
      await();
      failed = null;
      throw earlier;
    }
  }

  private void settle(boolean continues) {
    while (!queued.isEmpty()) {
      entered(() -> {
        context.driver().record(passed, stream);
        return passed;
      });
      context.await(passed);
      List<Request> over = List.copyOf(queued);
      queued.clear();
      List<Runnable> actions = new ArrayList<>();
      over.forEach(request -> actions.add(() -> settle(request, continues)));
      Cleanup.runAll(actions);
    }
  }

  /// Looks at the result of a request that the stream has passed.
  private void settle(Request request, boolean continues) {
    Parameters parameters = request.parameters();
    boolean again = false;
    try {
      boolean refused = isRefusal(request);
      long count =
          refused && continues ? 0 : parameters.count(request.operation(), request.handle());
      long missing = request.required() - count;
      if (missing > 0) {
        long fileOffset = parameters.fileOffset() + count;
        if (!continues || (count == 0 && !refused)) {
          throw request.ended(missing, fileOffset);
        }
        parameters.set(parameters.size() - count, fileOffset, parameters.bufferOffset() + count);
        again = true;
        submit(
            new Request(
                request.handle(),
                request.writes(),
                request.base(),
                missing,
                parameters,
                registered));
      }
    } finally {
      if (!again) {
        unused.add(parameters);
      }
    }
  }

  /// Whether cuFile failed the request because the stream is registered. If so, deregisters the stream.
  private boolean isRefusal(Request request) {
    if (request.parameters().returned() != REFUSED || !request.registered()) {
      return false;
    }
    if (registered) {
      LOG.info("cuFile fails requests on a registered stream; using the stream without");
      registered = false;
      deregister();
    }
    return true;
  }

  /// Waits until the stream has passed all requests, drops their results, and deregisters the
  /// stream. Call it before the stream is destroyed.
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    boolean rests = comesToRest();
    List<Runnable> actions = new ArrayList<>(List.of(this::destroyEvent));
    if (registered) {
      actions.add(this::deregister);
    }
    if (rests) {
      actions.add(arena::close);
    }
    Cleanup.runAll(actions);
  }

  /// Whether no request can write its result any more. If one still can, the memory of the results is never freed.
  private boolean comesToRest() {
    try (var _ = context.enter()) {
      context.driver().synchronize(stream);
      return true;
    } catch (TransferException _) {
      return context.comesToRest();
    }
  }

  private void deregister() {
    try (var _ = context.enter()) {
      streams.deregister(stream);
    }
  }

  private void destroyEvent() {
    try (var _ = context.enter()) {
      context.driver().destroy(passed);
    }
  }

  private <T> T entered(Supplier<T> action) {
    try (var _ = context.enter()) {
      return action.get();
    }
  }
}
