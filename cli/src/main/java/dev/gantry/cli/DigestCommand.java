// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.digest.RecordDigests;
import dev.gantry.cli.internal.digest.SampleDigests;
import dev.gantry.cli.internal.digest.TensorDigests;
import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/// `digest`: prints digests of loaded bytes, which prove that the right bytes arrive.
@Command(
    name = "digest",
    description =
        "Loads through the engine and prints the SHA-256 of every tensor, of every field of shards,"
            + " of every TFRecord record, or of every field of WebDataset samples; records and"
            + " samples are read and checked by the CPU on every device.")
final class DigestCommand extends ReportCommand {
  @Parameters(paramLabel = "FILE", description = Input.DESCRIPTION)
  private Location file;

  @Mixin private DeviceOption device;

  @Override
  Report report(GantrySession session) {
    Device target = device.device();
    return switch (Input.open(session, file)) {
      case Input.Weights(WeightsCatalogue weights) -> TensorDigests.of(session, weights, target);
      case Input.Shards(ShardSet set) -> TensorDigests.of(session, set, target);
      case Input.Records(List<Location> files) -> RecordDigests.of(session, files);
      case Input.Archives(List<Location> files) -> SampleDigests.of(session, files);
    };
  }
}
