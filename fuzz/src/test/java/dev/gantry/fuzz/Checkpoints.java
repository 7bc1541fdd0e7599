// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointCheck;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.Manifest;
import java.nio.file.Path;

/// Parsers of checkpoints on disk.
final class Checkpoints {
  private static final GantrySession SESSION = GantrySession.shared();

  private Checkpoints() {}

  static void manifest(byte[] input) {
    var _ = Manifest.read(SESSION, Location.of(Places.file("manifest.json", input)));
  }

  /// Lists, opens and verifies the checkpoints of a folder.
  static void folder(byte[] input) {
    Path root = Places.folder("checkpoints", Bundle.files(input));
    CheckpointListing listing = CheckpointStore.list(SESSION, root);
    for (CheckpointFolder checkpoint : listing.checkpoints()) {
      var _ = CheckpointCheck.damage(SESSION, checkpoint, _ -> {});
      checkpoint.groups().forEach(group -> Weights.load(checkpoint.open(group), input));
    }
  }
}
