// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferReport;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/// Reports how fast weights were loaded into memory.
///
/// @param bytes the size of the weights
/// @param most the most memory of each kind that slabs used at one time
/// @param verified whether checksums were compared
public record LoadRuns(
    List<Device> devices, long bytes, List<Run> runs, MemoryUse most, boolean verified)
    implements Report {
  /// One load.
  ///
  /// @param heldBytes the size of the slabs that hold the loaded tensors
  public record Run(double seconds, TransferReport transfer, long heldBytes) {}

  private double rate(Run run) {
    return bytes / 1e9 / run.seconds();
  }

  @Override
  public void print(PrintWriter out) {
    Table table =
        new Table(
            "run",
            "device",
            "transport",
            "readers",
            "bypassed page cache",
            "seconds",
            "GB/s",
            "slabs");
    String names = devices.stream().map(Device::toString).collect(Collectors.joining(","));
    for (int i = 0; i < runs.size(); i++) {
      Run run = runs.get(i);
      TransferReport transfer = run.transfer();
      table.row(
          Integer.toString(i + 1),
          names,
          Transfers.transports(transfer),
          Integer.toString(transfer.readers()),
          Transfers.percent(transfer.directBytes(), transfer.bytes())
              + (transfer.unknownBytes() > 0
                  ? ", cache state unknown "
                      + Transfers.percent(transfer.unknownBytes(), transfer.bytes())
                  : ""),
          String.format(Locale.ROOT, "%.3f", run.seconds()),
          String.format(Locale.ROOT, "%.2f", rate(run)),
          (run.heldBytes() >> 20) + " MiB");
    }
    table.print(out);
    printDevices(runs.getLast().transfer(), out);
    if (verified) {
      out.println("verified: all tensors match their recorded checksums");
    }
  }

  /// Prints where the bytes of each device came from, if the load was onto several devices.
  private static void printDevices(TransferReport report, PrintWriter out) {
    if (report.devices().isEmpty()) {
      return;
    }
    Table table = new Table("device", "from the host", "from other devices", "why not from others");
    for (TransferReport.DeviceReport device : report.devices()) {
      table.row(
          device.device().toString(),
          String.format(Locale.ROOT, "%,d bytes", device.fromHostBytes()),
          String.format(Locale.ROOT, "%,d bytes", device.fromDevicesBytes()),
          device.reason());
    }
    table.print(out);
  }

  @Override
  public Object json() {
    return Json.object()
        .with("devices", devices)
        .with("bytes", bytes)
        .with(
            "runs",
            runs.stream()
                .map(run ->
                    Json.object()
                        .with("seconds", run.seconds())
                        .with("gbPerSecond", rate(run))
                        .with("transport", Transfers.json(run.transfer()))
                        .with("readers", run.transfer().readers()))
                .toList())
        .with("mostMemory", most)
        .with("verified", verified);
  }
}
