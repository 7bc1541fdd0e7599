// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// Compares loads of several files that hold the same tensors, out of the page cache. The measured
/// time includes the reading of each file's header.
final class LoadsBench {
  private static final int TURNS = 9;

  private LoadsBench() {}

  /// @param arguments the device, then the files; the first file is the one that the others are
  ///     compared with
  static void main(String[] arguments) throws Exception {
    Device device = Device.parse(arguments[0]);
    List<Path> files = Arrays.stream(arguments).skip(1).map(Path::of).toList();
    try (GantrySession session = GantrySession.open()) {
      List<Long> bytes = new ArrayList<>();
      for (Path file : files) {
        bytes.add(tensors(session, file).stream().mapToLong(StoredTensor::bytes).sum());
      }
      if (bytes.stream().distinct().count() > 1) {
        throw new IllegalArgumentException("the files hold tensors of " + bytes + " bytes");
      }
      Comparison comparison = new Comparison("onto " + device, bytes.getFirst()).warm(files);
      for (Path file : files) {
        comparison.add(
            file.getFileName().toString(),
            () ->
                LoadedTensors.load(
                        session, tensors(session, file), device, TransferOptions.defaults())
                    .close());
      }
      comparison.print(TURNS);
    }
  }

  private static List<StoredTensor> tensors(GantrySession session, Path file) {
    return List.copyOf(WeightsFormats.open(session, Location.of(file)).tensors().values());
  }
}
