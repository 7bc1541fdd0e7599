// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.checkpoints.VerifiedCheckpoints;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.SavedCheckpoints;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/// `checkpoints verify`: reads every byte of checkpoints, and compares all checksums.
@Command(
    name = "verify",
    description =
        "Reads all files of checkpoints and compares their checksums with the manifests'. Prints a"
            + " line on standard error for each damaged file.")
final class VerifyCommand extends ReportCommand {
  @Parameters(paramLabel = "FOLDER", description = CheckpointsCommand.FOLDER)
  private Location folder;

  @Override
  Report report(GantrySession session) {
    return VerifiedCheckpoints.of(session, folder, new SavedCheckpoints(session, folder).list());
  }
}
