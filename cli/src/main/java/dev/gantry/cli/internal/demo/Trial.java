// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.core.TransferReport;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.SaveRequest;
import dev.gantry.djl.Weights;
import dev.gantry.formats.checkpoint.SaveOutcome;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/// One measured way to load a file's tensors, or to save them.
///
/// @param transport that carried the bytes
/// @param seconds of a load, from opening the file to the arrays; of a save, until all is on the disk,
///     whatever happens to the machine
/// @param heapBytes the heap's peak meanwhile
public record Trial(String transport, double seconds, long heapBytes) {
  private static final int RUNS = 2;

  @FunctionalInterface
  private interface Load {
    /// @param transport where to put what carried the bytes
    NDList load(NDManager manager, AtomicReference<String> transport) throws IOException;
  }

  @FunctionalInterface
  private interface Save {
    /// @return what carried the bytes
    String save(Model model, NDList arrays) throws IOException;
  }

  /// Loads a file's tensors into NDArrays by Gantry. Of two loads the faster counts.
  ///
  /// @param check looks at what was loaded, off the clock
  public static Trial load(Path file, Device device, Consumer<NDList> check) throws IOException {
    return better(
        device,
        (manager, transport) -> {
          try (Weights checkpoint = Weights.open(file);
              Progress bar = new Progress("load", checkpoint.totalBytes())) {
            Consumer<TransferReport> report =
                done -> transport.set(Transfers.transports(done.bytesByTransport()));
            return checkpoint.load(
                manager, LoadOptions.builder().optProgress(bar).optReport(report).build());
          }
        },
        check);
  }

  /// Loads by DJL's own decoder, which reads all data into one array of the heap.
  ///
  /// @throws OutOfMemoryError if the heap is too small for that
  static Trial loadByDjl(Path file, Device device) throws IOException {
    return better(
        device,
        (manager, _) -> {
          try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
            return NDList.decode(manager, in);
          }
        },
        _ -> {});
  }

  private static Trial better(Device device, Load way, Consumer<NDList> check) throws IOException {
    Trial best = new Trial("", Double.POSITIVE_INFINITY, 0);
    for (int run = 0; run < RUNS; run++) {
      try (NDManager manager = NDManager.newBaseManager(device)) {
        AtomicReference<String> transport = new AtomicReference<>("heap");
        HeapPeak heap = HeapPeak.start();
        long start = System.nanoTime();
        try (NDList arrays = way.load(manager, transport)) {
          double seconds = (System.nanoTime() - start) / 1e9;
          long heapBytes = heap.bytes();
          check.accept(arrays);
          if (seconds < best.seconds) {
            best = new Trial(transport.get(), seconds, heapBytes);
          }
        }
      }
    }
    return best;
  }

  /// Saves a file's arrays, once, from where they were loaded: as a checkpoint of a model that has the arrays as
  /// parameters.
  ///
  /// @param target folder that is not there yet
  static Trial save(Path file, Device device, Path target) throws IOException {
    return measure(
        file,
        device,
        (model, arrays) -> {
          model.setBlock(new ArraysBlock(arrays));
          try (CheckpointSaver saver = CheckpointSaver.builder().setDirectory(target).build()) {
            SaveRequest request = SaveRequest.builder().setStep(1).setModel(model).build();
            return switch (saver.save(request).join()) {
              case SaveOutcome.Saved saved -> Transfers.transports(saved.bytesByTransport());
              case SaveOutcome.Skipped _ ->
                  throw new IllegalStateException("nothing else is saved");
            };
          }
        });
  }

  /// Saves by DJL's own encoder, which copies each array into one of the heap, into a file that is then
  /// synchronised.
  ///
  /// @throws OutOfMemoryError if the heap is too small for that
  static Trial saveByDjl(Path file, Device device, Path target) throws IOException {
    return measure(
        file,
        device,
        (_, arrays) -> {
          try (FileChannel channel =
                  FileChannel.open(
                      target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
              OutputStream out = Channels.newOutputStream(channel)) {
            arrays.encode(out, NDList.Encoding.SAFETENSORS);
            channel.force(true);
          }
          return "heap";
        });
  }

  private static Trial measure(Path file, Device device, Save way) throws IOException {
    try (Model model = Model.newInstance("arrays", device);
        Weights checkpoint = Weights.open(file);
        NDList arrays = checkpoint.load(model.getNDManager(), LoadOptions.defaults())) {
      HeapPeak heap = HeapPeak.start();
      long start = System.nanoTime();
      String transport = way.save(model, arrays);
      double seconds = (System.nanoTime() - start) / 1e9;
      return new Trial(transport, seconds, heap.bytes());
    }
  }
}
