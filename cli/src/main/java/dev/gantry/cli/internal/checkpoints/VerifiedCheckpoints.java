// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointCheck;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Reports which files of checkpoints are damaged.
public record VerifiedCheckpoints(List<Checked> checkpoints) implements Report {
  private static final int EXIT_MALFORMED = 65;

  /// A checkpoint that was verified.
  ///
  /// @param files the number of the checkpoint's files, without the manifest; 0 if the manifest
  ///     is damaged
  /// @param bytes the size of these files
  private record Checked(String checkpoint, int files, long bytes, List<Damage> damaged) {
    static Checked of(String checkpoint, List<Long> sizes, List<MalformedFileException> errors) {
      long bytes = sizes.stream().mapToLong(Long::longValue).sum();
      return new Checked(checkpoint, sizes.size(), bytes, errors.stream().map(Damage::of).toList());
    }
  }

  private record Damage(Location file, long offset, String kind, String reason) {
    static Damage of(MalformedFileException error) {
      return new Damage(error.file(), error.offset(), error.kind(), error.detail());
    }
  }

  /// Reads every byte of the checkpoints, and compares their checksums.
  ///
  /// @throws TransferException if there is no checkpoint, or a file cannot be read for a reason
  ///     other than damage
  public static VerifiedCheckpoints of(
      GantrySession session, Location folder, CheckpointListing listing) {
    List<Checked> checked = new ArrayList<>();
    for (CheckpointFolder checkpoint : listing.saves()) {
      String name = ListedCheckpoints.name(checkpoint);
      List<Long> sizes = new ArrayList<>();
      try (Progress bar = Progress.ofSteps(name, -1)) {
        Optional<List<MalformedFileException>> errors =
            CheckpointCheck.damage(
                session,
                checkpoint.afresh(),
                bytes -> {
                  sizes.add(bytes);
                  bar.onProgress(sizes.size(), -1);
                });
        errors.ifPresent(all -> checked.add(Checked.of(name, sizes, all)));
      }
    }
    for (MalformedFileException error : listing.damaged()) {
      String name = CheckpointFolder.folderName(error.file()).toString();
      checked.add(Checked.of(name, List.of(), List.of(error)));
    }
    if (checked.isEmpty()) {
      throw new TransferException(
          "verify",
          folder + ", which has no checkpoint",
          new Failure.Errno(2, "ENOENT", "No such file or directory"));
    }
    return new VerifiedCheckpoints(checked);
  }

  /// Prints the undamaged checkpoints. [#exitCode] prints the damaged files on standard error.
  @Override
  public void print(PrintWriter out) {
    checkpoints.stream()
        .filter(each -> each.damaged().isEmpty())
        .forEach(each ->
            out.printf(
                Locale.ROOT,
                "%s: whole, %,d files, %,d bytes%n",
                Table.line(each.checkpoint()),
                each.files(),
                each.bytes()));
  }

  @Override
  public int exitCode(PrintWriter err) {
    List<Damage> damaged = checkpoints.stream().flatMap(each -> each.damaged().stream()).toList();
    for (Damage each : damaged) {
      err.printf("gantry: %s: offset %d: %s: %s%n", each.file, each.offset, each.kind, each.reason);
    }
    return damaged.isEmpty() ? 0 : EXIT_MALFORMED;
  }

  @Override
  public Object json() {
    return Json.object().with("checkpoints", checkpoints);
  }
}
