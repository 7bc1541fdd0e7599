// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.List;
import java.util.Optional;

/// Finds the recorded checksums of weights, for verified loads.
public final class RecordedSums {
  private RecordedSums() {}

  /// Returns the manifest's checksums if the weights are a checkpoint, else those in the checksum files
  /// beside them. Checksums within the files themselves, such as those of an archive's members, are
  /// compared by this call or by every load.
  ///
  /// @throws dev.gantry.core.MisuseException if the weights are neither a checkpoint nor local safetensors
  ///     nor an archive, or a file has no recorded checksums
  /// @throws dev.gantry.core.MalformedFileException if the checksums are damaged or belong to other files,
  ///     or a header or member is damaged
  public static List<KnownChecksums.Known> of(GantrySession session, WeightsCatalogue weights) {
    boolean own =
        !weights.checksums().isEmpty()
            || weights.tensors().values().stream()
                .anyMatch(tensor -> tensor.encoding() instanceof Encoding.Decoded);
    if (own) {
      weights.verify(session);
      return List.of();
    }
    return ofCheckpoint(session, weights).orElseGet(() -> SafetensorsSums.of(session, weights));
  }

  /// Returns the manifest's checksums if the weights are a checkpoint, those in the checksum files beside
  /// them if all data files have one, else none.
  ///
  /// @throws dev.gantry.core.MalformedFileException as [#of]
  public static List<KnownChecksums.Known> ifKnown(
      GantrySession session, WeightsCatalogue weights) {
    return ofCheckpoint(session, weights)
        .orElseGet(() ->
            SafetensorsSums.areThere(weights) ? SafetensorsSums.of(session, weights) : List.of());
  }

  private static Optional<List<KnownChecksums.Known>> ofCheckpoint(
      GantrySession session, WeightsCatalogue weights) {
    Optional<CheckpointFolder> checkpoint =
        weights.files().stream()
            .findFirst()
            .flatMap(file -> CheckpointFolder.around(session, file));
    checkpoint.ifPresent(saved -> saved.checkHeaders(weights));
    return checkpoint.map(saved -> saved.sums(weights));
  }
}
