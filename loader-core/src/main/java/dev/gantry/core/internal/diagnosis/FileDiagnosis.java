// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.transport.TransferEngine;
import java.nio.file.Path;

/// Says how one file would be loaded.
///
/// @param prediction the transport for the file's bytes that are not in the page cache, and why no
///     better transport is used
/// @param directAbsence why reads cannot go past the page cache; empty if they can
/// @param residentBytes the number of the file's bytes that are in the page cache; -1 if the
///     kernel does not say
public record FileDiagnosis(
    TransferReport.FileReport prediction, String directAbsence, long size, long residentBytes) {
  /// Opens the file as a load would, and reads at most one block of the file by `gds`, since only
  /// a read can show whether cuFile reaches the file past the CPU. The call reads nothing where
  /// such a read may hang.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  /// @throws dev.gantry.core.DeviceUnavailableException if there is no such device
  public static FileDiagnosis of(TransferEngine engine, Location file, Device device) {
    return engine.look(
        file,
        device,
        (source, transport) -> {
          if (!HostFacts.mayHang(Path.of("/"))) {
            transport.tryGds(source.size());
          }
          return new FileDiagnosis(
              transport.prediction(),
              source.descriptors().directAbsence(),
              source.size(),
              source.residentBytes());
        });
  }
}
