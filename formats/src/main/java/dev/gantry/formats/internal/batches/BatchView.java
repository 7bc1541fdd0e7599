// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import java.util.List;

/// Describes the contents of a filled slot.
///
/// @param samples in the batch
/// @param fields in the dataset's order
/// @param after the state of the dataset after this batch has been taken
public record BatchView(int samples, List<FieldView> fields, DatasetState after) {
  public BatchView {
    fields = List.copyOf(fields);
  }
}
