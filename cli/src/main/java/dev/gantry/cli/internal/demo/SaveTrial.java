// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDList;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.SaveRequest;
import dev.gantry.djl.Weights;
import dev.gantry.formats.checkpoint.SaveOutcome;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// One way to bring a file's arrays from where they were loaded to the disk, tried once.
///
/// @param path by which the bytes went
/// @param seconds until all is on the disk, whatever happens to the machine
/// @param heapBytes the heap's peak meanwhile
record SaveTrial(String path, double seconds, long heapBytes) {
  /// What is measured.
  @FunctionalInterface
  private interface Way {
    /// @return by which path the bytes went
    String save(Model model, NDList arrays) throws IOException;
  }

  /// By GantryCommand, as a checkpoint of a model that has the arrays as parameters.
  ///
  /// @param target folder that is not there yet
  static SaveTrial gantry(Path file, Device device, Path target) throws IOException {
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

  /// By DJL's own encoder, which copies each array into one of the heap, into a file that is then
  /// synchronised.
  ///
  /// @throws OutOfMemoryError if the heap is too small for that
  static SaveTrial djl(Path file, Device device, Path target) throws IOException {
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

  private static SaveTrial measure(Path file, Device device, Way way) throws IOException {
    try (Model model = Model.newInstance("arrays", device);
        Weights checkpoint = Weights.open(file);
        NDList arrays = checkpoint.load(model.getNDManager(), LoadOptions.defaults())) {
      HeapPeak heap = HeapPeak.start();
      long start = System.nanoTime();
      String path = way.save(model, arrays);
      double seconds = (System.nanoTime() - start) / 1e9;
      return new SaveTrial(path, seconds, heap.bytes());
    }
  }
}
