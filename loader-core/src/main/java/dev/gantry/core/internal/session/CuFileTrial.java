// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.cufile.BatchBudget;
import dev.gantry.core.internal.cufile.BatchTransfers;
import dev.gantry.core.internal.cufile.CuFileRule.Way;
import dev.gantry.core.internal.cufile.StreamTransfers;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.PosixFile;
import dev.gantry.core.internal.transport.CuFileSession;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/// The same reads of one file into device memory by each of cuFile's ways, to measure which way serves
/// which reads: [CuFileRule][dev.gantry.core.internal.cufile.CuFileRule] rests on that. For one thread.
public final class CuFileTrial implements AutoCloseable {
  /// One read.
  public record Part(long fileOffset, long memoryOffset, long bytes) {}

  /// Reads that are ready to be made: threads are started, and streams are open.
  public interface Reading extends AutoCloseable {
    /// Makes all reads, and returns when their bytes are in device memory.
    void run();

    @Override
    void close();
  }

  private final List<Runnable> closing = new ArrayList<>();
  private final CudaContext context;
  private final Transport transport;
  private final CuFile cuFile;
  private final CuFileHandle handle;
  private final DeviceSlab slab;

  private CuFileTrial(Path path, Device.Cuda device, boolean pastCache, long memoryBytes) {
    context = CudaContext.of(device);
    boolean complete = false;
    try {
      CuFileSession session = closing(new CuFileSession(), CuFileSession::close);
      Availability<CuFile> direct = session.driver(Transport.GDS);
      transport = direct instanceof Availability.Present<CuFile> ? Transport.GDS : Transport.COMPAT;
      cuFile = session.driver(transport).orElseThrow(DeviceUnavailableException::new);
      PosixFile file =
          closing(
              PosixFile.open(FileCalls.ofPlatform(), path, CachePolicy.BY_RESIDENCY),
              PosixFile::close);
      int past = file.descriptors().direct();
      if (past < 0 && (pastCache || transport == Transport.GDS)) {
        throw new DeviceUnavailableException(file.descriptors().directAbsence());
      }
      handle =
          closing(
              cuFile.registerHandle(
                  path,
                  pastCache || transport == Transport.GDS ? past : file.descriptors().buffered()),
              CuFileHandle::close);
      slab = closing(DeviceSlab.allocate(context, memoryBytes), DeviceSlab::release);
      if (transport == Transport.GDS) {
        register();
      }
      complete = true;
    } finally {
      if (!complete) {
        close();
      }
    }
  }

  private <T> T closing(T one, java.util.function.Consumer<T> close) {
    closing.add(() -> close.accept(one));
    return one;
  }

  private void register() {
    try (var _ = context.enter()) {
      cuFile.registerBuffer(slab.deviceSegment());
    }
    closing.add(() -> {
      try (var _ = context.enter()) {
        cuFile.deregisterBuffer(slab.deviceSegment());
      }
    });
  }

  /// Opens a file by `gds` where that serves, else by `compat`.
  ///
  /// @param pastCache whether reads go past the page cache; those of `gds` always do
  /// @param memoryBytes of device memory to read into
  /// @throws DeviceUnavailableException if neither serves
  /// @throws TransferException if cuFile does not take the file
  public static CuFileTrial open(
      Path file, Device.Cuda device, boolean pastCache, long memoryBytes) {
    return new CuFileTrial(file, device, pastCache, memoryBytes);
  }

  /// [Transport#GDS] or [Transport#COMPAT].
  public Transport transport() {
    return transport;
  }

  /// Gets reads ready.
  ///
  /// @param depth how many are under way at once: as many threads, entries of a batch, or streams
  /// @throws DeviceUnavailableException if libcufile does not have this way
  public Reading prepare(Way way, List<Part> parts, int depth) {
    return switch (way) {
      case SYNC -> new Threaded(parts, depth);
      case BATCH -> batched(parts, depth);
      case STREAM -> new Streamed(parts, depth);
    };
  }

  private Reading batched(List<Part> parts, int depth) {
    int most = Math.min(depth, BatchBudget.of(cuFile).most());
    BatchTransfers batches =
        new BatchTransfers(
            cuFile.batches().orElseThrow(DeviceUnavailableException::new),
            new BatchBudget(most, true),
            context);
    List<BatchTransfers.Request> requests =
        parts.stream()
            .map(part ->
                new BatchTransfers.Request(
                    handle,
                    false,
                    slab.deviceSegment(),
                    part.memoryOffset(),
                    part.fileOffset(),
                    part.bytes(),
                    part.bytes()))
            .toList();
    return new Reading() {
      @Override
      public void run() {
        batches.run(requests, () -> true, _ -> {});
      }

      @Override
      public void close() {}
    };
  }

  /// Calls of several threads, each of which returns when its bytes are there.
  private final class Threaded implements Reading {
    private final List<Part> parts;
    private final int threads;
    private final ExecutorService pool;

    Threaded(List<Part> parts, int threads) {
      this.parts = parts;
      this.threads = threads;
      pool =
          Executors.newFixedThreadPool(
              threads, Thread.ofPlatform().daemon().name("gantry-trial-", 0).factory());
    }

    @Override
    public void run() {
      AtomicInteger next = new AtomicInteger();
      List<Future<?>> running = new ArrayList<>();
      for (int thread = 0; thread < threads; thread++) {
        running.add(pool.submit(() -> readAll(next)));
      }
      Cleanup.runAll(running.stream().<Runnable>map(one -> () -> await(one)).toList());
    }

    private void readAll(AtomicInteger next) {
      try (var _ = context.enter()) {
        for (int i = next.getAndIncrement(); i < parts.size(); i = next.getAndIncrement()) {
          read(parts.get(i));
        }
      }
    }

    private static void await(Future<?> running) {
      try {
        running.get();
      } catch (ExecutionException e) {
        throw e.getCause() instanceof RuntimeException cause
            ? cause
            : new IllegalStateException(e.getCause());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new TransferException("cuFileRead", "trial", new Failure.Cancelled());
      }
    }

    @Override
    public void close() {
      pool.shutdownNow();
    }
  }

  private void read(Part part) {
    long done = 0;
    while (done < part.bytes()) {
      long count =
          cuFile.read(
              handle,
              slab.deviceSegment(),
              part.bytes() - done,
              part.fileOffset() + done,
              part.memoryOffset() + done);
      if (count <= 0) {
        throw new TransferException(
            "cuFileRead",
            handle.file() + " offset " + (part.fileOffset() + done),
            new Failure.EndOfFile(part.bytes() - done));
      }
      done += count;
    }
  }

  /// Reads that are queued on several streams in turn, and looked at when all have passed.
  private final class Streamed implements Reading {
    private final List<Part> parts;
    private final List<StreamTransfers> streams = new ArrayList<>();
    private final List<Runnable> ends = new ArrayList<>();

    Streamed(List<Part> parts, int count) {
      this.parts = parts;
      boolean complete = false;
      try {
        for (int i = 0; i < count; i++) {
          streams.add(stream());
        }
        complete = true;
      } finally {
        if (!complete) {
          close();
        }
      }
    }

    private StreamTransfers stream() {
      if (transport == Transport.COMPAT) {
        throw new DeviceUnavailableException(StreamTransfers.NOT_IN_COMPATIBILITY_MODE);
      }
      CudaDriver driver = context.driver();
      CudaDriver.Stream stream;
      try (var _ = context.enter()) {
        stream = driver.createStream();
      }
      ends.add(() -> {
        try (var _ = context.enter()) {
          driver.destroy(stream);
        }
      });
      StreamTransfers transfers =
          new StreamTransfers(
              cuFile.streams().orElseThrow(DeviceUnavailableException::new), context, stream, true);
      ends.add(transfers::close);
      return transfers;
    }

    @Override
    public void run() {
      for (int i = 0; i < parts.size(); i++) {
        Part part = parts.get(i);
        streams
            .get(i % streams.size())
            .read(
                handle,
                slab.deviceSegment(),
                part.memoryOffset(),
                part.fileOffset(),
                part.bytes(),
                part.bytes());
      }
      Cleanup.runAll(streams.stream().<Runnable>map(stream -> stream::finish).toList());
    }

    @Override
    public void close() {
      Cleanup.runAll(ends.reversed());
    }
  }

  /// The device memory, for those who compare what was read.
  public DeviceSlab memory() {
    return slab;
  }

  @Override
  public void close() {
    List<Runnable> all = List.copyOf(closing).reversed();
    closing.clear();
    Cleanup.runAll(all);
  }
}
