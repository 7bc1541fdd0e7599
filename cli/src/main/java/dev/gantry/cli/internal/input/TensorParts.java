// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import dev.gantry.formats.spi.StoredTensor;
import java.util.List;

/// Divides tensors into parts that are loaded one after the other.
public final class TensorParts {
  /// The most bytes of a part. A larger tensor is a part of its own.
  private static final long PART_BYTES = 256L << 20;

  private TensorParts() {}

  /// Returns the index after the last tensor of the part that begins with the tensor at index
  /// `begin`.
  public static int end(List<StoredTensor> tensors, int begin) {
    int end = begin;
    for (long bytes = 0;
        end == begin || (end < tensors.size() && bytes + tensors.get(end).bytes() <= PART_BYTES);
        end++) {
      bytes += tensors.get(end).bytes();
    }
    return end;
  }
}
