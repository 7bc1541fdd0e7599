// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.webdataset.StoredIndex;
import dev.gantry.formats.internal.webdataset.TarIndex;
import java.util.Optional;
import java.util.OptionalLong;

/// Says whether a TFRecord file or tar archive has a usable index.
///
/// @param summary the index's summary; empty if there is no usable index
/// @param absence why there is no usable index, in one line that names the file or the index;
///     empty if there is one
public record IndexState(Optional<TfRecordIndex.Summary> summary, String absence)
    implements Json.Document {
  /// Examines the index of a TFRecord file. A damaged index counts as unusable, as a stale index
  /// does, because both must be built again.
  ///
  /// @throws dev.gantry.core.TransferException if the file does not exist, or the index cannot be
  ///     read
  public static IndexState of(GantrySession session, Location file) {
    try {
      return switch (TfRecordIndex.open(file, session)) {
        case TfRecordIndex.Found.Unusable(String reason) -> unusable(reason);
        case TfRecordIndex.Found.Usable(TfRecordIndex index) -> {
          try (index) {
            yield new IndexState(Optional.of(index.summary()), "");
          }
        }
      };
    } catch (MalformedFileException e) {
      return unusable(e.getMessage());
    }
  }

  /// Examines the index of a tar archive, as [#of] does.
  public static IndexState ofArchive(GantrySession session, Location file) {
    try {
      return switch (StoredIndex.open(session, file)) {
        case StoredIndex.Found.Unusable(String reason) -> unusable(reason);
        case StoredIndex.Found.Usable(TarIndex index) -> {
          try (index) {
            yield new IndexState(Optional.of(summary(index)), "");
          }
        }
      };
    } catch (MalformedFileException e) {
      return unusable(e.getMessage());
    }
  }

  /// Summarises an archive's index as if it were a TFRecord file's: samples count as records, and
  /// fields as features.
  public static TfRecordIndex.Summary summary(TarIndex index) {
    return new TfRecordIndex.Summary(
        index.samples(),
        index.bytes(),
        index.fields().stream()
            .map(name ->
                new TfRecordIndex.Feature(
                    name, Optional.empty(), 0, OptionalLong.empty(), Optional.empty()))
            .toList());
  }

  static IndexState unusable(String reason) {
    return new IndexState(Optional.empty(), reason);
  }

  public boolean isUsable() {
    return summary.isPresent();
  }

  @Override
  public Json.JsonObject json() {
    return Json.object().with("usable", isUsable()).with("reason", absence);
  }
}
