// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.contents.ArchiveContents;
import dev.gantry.cli.internal.contents.RecordContents;
import dev.gantry.cli.internal.contents.ShardContents;
import dev.gantry.cli.internal.contents.WeightsContents;
import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/// `inspect`: shows the contents of a file.
@Command(
    name = "inspect",
    description =
        "Shows what weights, raw tensor shards, TFRecord files or WebDataset archives hold, without"
            + " loading them. If a TFRecord file has no usable index, all its records are read,"
            + " counted and checked.")
final class InspectCommand extends ReportCommand {
  @Parameters(paramLabel = "FILE", description = Input.DESCRIPTION)
  private Location file;

  @Override
  Report report(GantrySession session) {
    return switch (Input.open(session, file)) {
      case Input.Weights(WeightsCatalogue weights) -> new WeightsContents(weights);
      case Input.Shards(ShardSet set) -> new ShardContents(set);
      case Input.Records(List<Location> files) -> RecordContents.of(session, files);
      case Input.Archives(List<Location> files) -> ArchiveContents.of(session, files);
    };
  }
}
