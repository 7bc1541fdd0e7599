// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.RecordedSums;
import dev.gantry.formats.internal.checkpoint.SavedCheckpoints;
import dev.gantry.formats.internal.checkpoint.SavedGroup;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// One side of a comparison: the tensors of a checkpoint, or of weights.
///
/// @param groups the tensors by group and name; weights that are not a checkpoint have only the
///     group `model`
/// @param sums the recorded CRC32C of each tensor that has one, by the tensor's extent
public record Compared(
    SequencedMap<String, SequencedMap<String, StoredTensor>> groups, Map<Extent, Integer> sums) {
  private static final String MODEL = "model";

  /// @throws dev.gantry.core.MisuseException if the location has neither a checkpoint nor weights
  public static Compared open(GantrySession session, Location location) {
    SequencedMap<String, SequencedMap<String, StoredTensor>> groups = new LinkedHashMap<>();
    Map<Extent, Integer> sums = new HashMap<>();
    Optional<CheckpointFolder> checkpoint = new SavedCheckpoints(session, location).named();
    if (checkpoint.isPresent()) {
      for (String name : checkpoint.get().groups()) {
        SavedGroup group = checkpoint.get().group(name);
        groups.put(name, group.tensors().tensors());
        add(sums, group.sums().get());
      }
    } else {
      WeightsCatalogue weights = Input.weights(session, location);
      groups.put(MODEL, weights.tensors());
      add(sums, RecordedSums.ifKnown(session, weights));
    }
    return new Compared(groups, sums);
  }

  private static void add(Map<Extent, Integer> sums, List<KnownChecksums.Known> known) {
    known.forEach(one -> sums.put(one.extent(), one.crc32c()));
  }

  /// Returns the tensors to compare with another side: those of all groups if both sides have
  /// several groups, otherwise those of the group `model`.
  ///
  /// @return the tensors by name; the name of a tensor of another group than `model` begins with
  ///     the group, as in `GROUP: NAME`
  public Side beside(Compared other) {
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>();
    groups.forEach((group, byName) -> {
      if (group.equals(MODEL)) {
        tensors.putAll(byName);
      } else if (groups.size() > 1 && other.groups.size() > 1) {
        byName.forEach((name, tensor) -> tensors.put(group + ": " + name, tensor));
      }
    });
    return new Side(tensors, sums);
  }

  /// The tensors of one side that are compared, by name, and the checksums of all tensors of that
  /// side, by extent.
  record Side(SequencedMap<String, StoredTensor> tensors, Map<Extent, Integer> sums) {
    Optional<Integer> sum(String name) {
      return Optional.ofNullable(tensors.get(name)).map(tensor -> sums.get(tensor.extent()));
    }
  }
}
