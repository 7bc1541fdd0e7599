// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.core.TransferReport;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/// One way to bring a file's tensors into NDArrays, tried twice; the faster counts.
///
/// @param path by which the bytes came
/// @param seconds from opening the file to the arrays
/// @param heapBytes the heap's peak meanwhile
public record LoadTrial(String path, double seconds, long heapBytes) {
  private static final int RUNS = 2;

  /// What is measured.
  @FunctionalInterface
  private interface Way {
    /// @param path where to put by which path the bytes came
    NDList load(NDManager manager, AtomicReference<String> path) throws IOException;
  }

  /// By GantryCommand.
  ///
  /// @param check looks at what was loaded, off the clock
  public static LoadTrial gantry(Path file, Device device, Consumer<NDList> check)
      throws IOException {
    return better(
        device,
        (manager, path) -> {
          try (Weights checkpoint = Weights.open(file);
              Progress bar = new Progress("load", checkpoint.totalBytes())) {
            Consumer<TransferReport> report =
                done -> path.set(Transfers.transports(done.bytesByTransport()));
            return checkpoint.load(
                manager, LoadOptions.builder().optProgress(bar).optReport(report).build());
          }
        },
        check);
  }

  /// By DJL's own decoder, which reads all data into one array of the heap.
  ///
  /// @throws OutOfMemoryError if the heap is too small for that
  static LoadTrial djl(Path file, Device device) throws IOException {
    return better(
        device,
        (manager, _) -> {
          try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
            return NDList.decode(manager, in);
          }
        },
        _ -> {});
  }

  private static LoadTrial better(Device device, Way way, Consumer<NDList> check)
      throws IOException {
    LoadTrial best = new LoadTrial("", Double.POSITIVE_INFINITY, 0);
    for (int run = 0; run < RUNS; run++) {
      try (NDManager manager = NDManager.newBaseManager(device)) {
        AtomicReference<String> path = new AtomicReference<>("heap");
        HeapPeak heap = HeapPeak.start();
        long start = System.nanoTime();
        try (NDList arrays = way.load(manager, path)) {
          double seconds = (System.nanoTime() - start) / 1e9;
          long heapBytes = heap.bytes();
          check.accept(arrays);
          if (seconds < best.seconds) {
            best = new LoadTrial(path.get(), seconds, heapBytes);
          }
        }
      }
    }
    return best;
  }
}
