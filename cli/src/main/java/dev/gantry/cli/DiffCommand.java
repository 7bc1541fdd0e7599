// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.checkpoints.Compared;
import dev.gantry.cli.internal.checkpoints.WeightsDiff;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `checkpoints diff`: compares two checkpoints, or any two files or folders of weights.
@Command(
    name = "diff",
    description =
        "Prints which tensors were added or removed, have another dtype or shape, or other values."
            + " Recorded checksums are compared if both sides have them, otherwise the bytes. The"
            + " exit code is 1 if there is a difference.")
final class DiffCommand extends ReportCommand {
  private static final String SIDE = "A checkpoint's folder, or weights of any format; also a URL.";

  @Parameters(index = "0", paramLabel = "A", description = SIDE)
  private Location before;

  @Parameters(index = "1", paramLabel = "B", description = SIDE)
  private Location after;

  @Option(
      names = "--max-difference",
      description = "Read tensors that differ, and print the largest absolute difference of each.")
  private boolean maxDifference;

  @Override
  Report report(GantrySession session) {
    Compared one = Compared.open(session, before);
    Compared other = Compared.open(session, after);
    return WeightsDiff.of(session, one.beside(other), other.beside(one), maxDifference);
  }
}
