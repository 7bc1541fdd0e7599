// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import picocli.CommandLine.Command;

/// `checkpoints`: lists, verifies, compares and removes the checkpoints of a training.
@Command(
    name = "checkpoints",
    description = "Lists, verifies, compares and removes checkpoints of a training.",
    subcommands = {ListCommand.class, VerifyCommand.class, DiffCommand.class, PruneCommand.class})
final class CheckpointsCommand {
  static final String FOLDER =
      "A folder of checkpoints, or the folder of one checkpoint: a path or an s3 URL. One"
          + " checkpoint may also be an http or https URL.";
}
