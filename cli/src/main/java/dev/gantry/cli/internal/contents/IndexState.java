// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex;

/// Whether a TFRecord file has an index that can be used.
public sealed interface IndexState {
  record Usable(TfRecordIndex.Summary summary) implements IndexState {}

  /// @param reason one line, which names the index
  record Unusable(String reason) implements IndexState {}

  /// Also of a damaged index: it is to be built again, as one that is stale is.
  ///
  /// @throws dev.gantry.core.TransferException if the file is not there, or the index cannot be
  ///     read
  static IndexState of(GantrySession session, Location file) {
    try {
      return switch (TfRecordIndex.open(file, session)) {
        case TfRecordIndex.Found.Unusable(String reason) -> new Unusable(reason);
        case TfRecordIndex.Found.Usable(TfRecordIndex index) -> {
          try (index) {
            yield new Usable(index.summary());
          }
        }
      };
    } catch (MalformedFileException e) {
      return new Unusable(e.getMessage());
    }
  }

  default boolean isUsable() {
    return this instanceof Usable;
  }

  default Object json() {
    return Json.object().with("usable", isUsable()).with("reason", absence());
  }

  /// Empty where it is usable.
  default String absence() {
    return switch (this) {
      case Usable _ -> "";
      case Unusable(String reason) -> reason;
    };
  }
}
