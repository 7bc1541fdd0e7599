// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.internal.weights.LoadedTensors;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/// How fast checkpoints come into a device's memory: `LoadBench DEVICE sweep|rows FILE…`.
///
/// A run counts from the call to the return of a load: planning, opening, allocating and reading.
/// Prints a line a run: `gantry TRANSPORT, cold|hot, GB/s, what`. All bytes are read back from the
/// device and compared with the file once for each row.
public final class LoadBench {
  private static final int CHUNK_BYTES = 16 << 20;

  private final Device device;
  private final GantrySession session;

  private LoadBench(Device device, GantrySession session) {
    this.device = device;
    this.session = session;
  }

  public static void main(String[] arguments) {
    if (arguments.length < 3) {
      System.err.println("usage: LoadBench DEVICE sweep|rows FILE...");
      System.exit(64);
    }
    Device device = Device.parse(arguments[0]);
    for (String name : List.of(arguments).subList(2, arguments.length)) {
      try (GantrySession session = GantrySession.open()) {
        LoadBench bench = new LoadBench(device, session);
        Path file = Path.of(name);
        if (arguments[1].equals("sweep")) {
          bench.sweep(file);
        } else {
          bench.rows(file);
        }
      }
    }
  }

  /// Every transport, first cold, then hot; the first hot run also pins the staging buffers.
  private void rows(Path file) {
    List<Transport> transports =
        device instanceof Device.Cuda
            ? List.of(Transport.STAGED, Transport.COMPAT, Transport.GDS)
            : List.of(Transport.HOST);
    for (Transport transport : transports) {
      TransferOptions options = TransferOptions.defaults().withTransport(transport);
      try {
        if (PageCache.drop()) {
          run(file, options, transport + "\tcold");
          PageCache.drop();
          run(file, options, transport + "\tcold");
        }
        PageCache.warm(file);
        for (int i = 0; i < 3; i++) {
          run(file, options, transport + "\thot");
        }
        check(file, options, transport);
      } catch (DeviceUnavailableException e) {
        System.out.printf("gantry %s\t-\t%s%n", transport, e.getMessage());
      }
    }
    PageCache.warm(file);
    run(file, TransferOptions.defaults(), "by evidence\thot");
    check(file, TransferOptions.defaults(), "by evidence");
  }

  /// Loads by readers and request size, to choose the defaults by.
  private void sweep(Path file) {
    PageCache.warm(file);
    for (int threads : new int[] {4, 8, 12}) {
      for (int mib : new int[] {4, 8, 16}) {
        for (int i = 0; i < 3; i++) {
          run(file, options(threads, mib), threads + " threads x " + mib + " MiB\thot");
        }
      }
    }
    for (int threads : new int[] {2, 4, 8}) {
      for (int mib : new int[] {8}) {
        for (int i = 0; i < 2 && PageCache.drop(); i++) {
          run(file, options(threads, mib), threads + " threads x " + mib + " MiB\tcold");
        }
      }
    }
  }

  private static TransferOptions options(int threads, int mib) {
    return TransferOptions.defaults()
        .withThreads(threads)
        .withLimits(PlanLimits.DEFAULT.withRequestBytes((long) mib << 20));
  }

  private void run(Path file, TransferOptions options, String label) {
    pause();
    long start = System.nanoTime();
    List<Wanted> wanted = wanted(file);
    long opened = System.nanoTime();
    try (Loaded loaded = session.load(wanted, device, options)) {
      double seconds = (System.nanoTime() - start) / 1e9;
      long bytes = wanted.stream().mapToLong(one -> one.extent().length()).sum();
      System.out.printf(
          Locale.ROOT,
          "gantry %s\t%.2f GB/s\t%s, %d tensors; header %.1f ms, reading alone %.2f GB/s%n",
          label,
          bytes / 1e9 / seconds,
          file.getFileName(),
          wanted.size(),
          (opened - start) / 1e6,
          loaded.report().gigabytesPerSecond());
    }
  }

  /// Between runs, so that the driver is done with the memory that the last one freed: it clears it
  /// behind the program's back, and what comes right after is a tenth slower.
  public static void pause() {
    try {
      Thread.sleep(Long.getLong("gantry.bench.pause", 500));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }

  private static List<Wanted> wanted(Path file) {
    return SafetensorsOpener.open(file).tensors().values().stream()
        .map(LoadedTensors::wanted)
        .toList();
  }

  private void check(Path file, TransferOptions options, Object label) {
    List<Wanted> wanted = wanted(file);
    long compared = 0;
    try (Loaded loaded = session.load(wanted, device, options);
        FileChannel channel = FileChannel.open(file);
        Arena arena = Arena.ofConfined()) {
      MemorySegment ours = arena.allocate(CHUNK_BYTES);
      MemorySegment theirs = arena.allocate(CHUNK_BYTES);
      for (int i = 0; i < wanted.size(); i++) {
        Region region = loaded.regions().get(i);
        for (long at = 0; at < region.length(); at += CHUNK_BYTES) {
          long length = Math.min(CHUNK_BYTES, region.length() - at);
          region.slice(at, length).copyTo(ours);
          ByteBuffer buffer = theirs.asSlice(0, length).asByteBuffer();
          long offset = wanted.get(i).extent().offset() + at;
          while (buffer.hasRemaining()) {
            channel.read(buffer, offset + buffer.position());
          }
          if (ours.asSlice(0, length).mismatch(theirs.asSlice(0, length)) >= 0) {
            System.out.printf("gantry %s\tWRONG BYTES\t%s tensor %d%n", label, file, i);
            System.exit(1);
          }
          compared += length;
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    System.out.printf("gantry %s\tchecked\t%,d bytes on %s%n", label, compared, device);
  }
}
