// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import java.util.List;

/// Describes what a filled slot holds.
///
/// @param samples in the batch
/// @param fields in the dataset's order
/// @param after where the dataset stands when this batch has been taken
public record BatchView(int samples, List<FieldView> fields, DatasetState after) {
  public BatchView {
    fields = List.copyOf(fields);
  }
}
