// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.checkpoints.ListedCheckpoints;
import dev.gantry.cli.internal.checkpoints.PrunedCheckpoints;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import dev.gantry.formats.internal.checkpoint.SavedCheckpoints;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `checkpoints prune`: removes the checkpoints that no rule keeps.
@Command(
    name = "prune",
    description =
        "Prints which checkpoints the rules do not keep, and removes them with --yes. The"
            + " checkpoint saved last is always kept, and so are damaged checkpoints and files that"
            + " no saver wrote.")
final class PruneCommand extends ReportCommand {
  @Parameters(paramLabel = "FOLDER", description = "A folder of checkpoints, or its s3 URL.")
  private Location folder;

  @Mixin private KeepOptions keep;

  @Option(
      names = "--yes",
      description = "Remove the checkpoints; without this option nothing changes.")
  private boolean yes;

  @Override
  Report report(GantrySession session) {
    SavedCheckpoints saved = new SavedCheckpoints(session, folder);
    CheckpointListing listing = saved.list();
    Retention retention =
        keep.retention(listing.saves())
            .orElseThrow(() ->
                new MisuseException(
                    "prune needs a rule: --keep-last N, --keep-every STEPS or --keep-best N"));
    if (saved.single().isPresent()) {
      throw new MisuseException(
          "FOLDER must be a folder of checkpoints (" + folder + " is one checkpoint)");
    }
    // The bytes are counted before the files are removed.
    ListedCheckpoints listed = ListedCheckpoints.of(listing, Optional.of(retention));
    SavedCheckpoints.Pruned pruned =
        yes
            ? saved.prune(retention)
            : new SavedCheckpoints.Pruned(
                SavedCheckpoints.surplus(listing.saves(), retention), List.of());
    List<String> leftovers = folder instanceof Location.Local ? listing.unfinished() : List.of();
    return PrunedCheckpoints.of(listed, pruned, leftovers, yes);
  }
}
