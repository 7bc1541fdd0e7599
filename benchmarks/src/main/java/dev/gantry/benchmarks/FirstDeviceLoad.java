// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;

/// The first loads of a process onto a device, in milliseconds from the start of the process:
/// `FirstDeviceLoad FILE DEVICE [prepare]`, with `prepare` after [dev.gantry.core.Session#prepare].
/// `GANTRY_STARTED` is when the process was started, in nanoseconds of the epoch.
public final class FirstDeviceLoad {
  private static final int LOADS = 3;

  private FirstDeviceLoad() {}

  public static void main(String[] arguments) {
    Instant started = Instant.EPOCH.plusNanos(Long.parseLong(System.getenv("GANTRY_STARTED")));
    StringBuilder line = new StringBuilder();
    tell(line, "main", started);
    Device device = Device.parse(arguments[1]);
    try (GantrySession session = GantrySession.open()) {
      if (arguments.length > 2) {
        session.prepare(device);
      }
      tell(line, "session", started);
      List<StoredTensor> tensors =
          List.copyOf(
              WeightsFormats.open(GantrySession.shared(), Location.of(Path.of(arguments[0])))
                  .tensors()
                  .values());
      tell(line, "header", started);
      for (int i = 1; i <= LOADS; i++) {
        LoadedTensors.load(session, tensors, device, TransferOptions.defaults()).close();
        tell(line, "load " + i, started);
      }
    }
    System.out.println(line);
  }

  private static void tell(StringBuilder line, String what, Instant started) {
    double millis = Duration.between(started, Instant.now()).toNanos() / 1e6;
    line.append(String.format(Locale.ROOT, "%s %.0f ms  ", what, millis));
  }
}
