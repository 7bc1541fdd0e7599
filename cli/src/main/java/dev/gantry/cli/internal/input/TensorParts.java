// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import dev.gantry.formats.spi.StoredTensor;
import java.util.List;

/// Divides tensors into parts that are loaded one after the other.
public final class TensorParts {
  /// The most bytes that are loaded at a time, unless one tensor has more.
  private static final long PART_BYTES = 256L << 20;

  private TensorParts() {}

  /// Returns the end of the part that begins with a tensor.
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
