// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.checkpoints.ListedCheckpoints;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import dev.gantry.formats.internal.checkpoint.SavedCheckpoints;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/// `checkpoints list`: shows the checkpoints of a folder, whole or not.
@Command(
    name = "list",
    description =
        "Lists checkpoints with their steps, times, bytes, metrics and states. If rules are given,"
            + " the list also shows which rules keep each checkpoint.")
final class ListCommand extends ReportCommand {
  @Parameters(paramLabel = "FOLDER", description = CheckpointsCommand.FOLDER)
  private Location folder;

  @Mixin private KeepOptions keep;

  @Override
  Report report(GantrySession session) {
    CheckpointListing listing = new SavedCheckpoints(session, folder).list();
    return ListedCheckpoints.of(listing, keep.retention(listing.saves()));
  }
}
