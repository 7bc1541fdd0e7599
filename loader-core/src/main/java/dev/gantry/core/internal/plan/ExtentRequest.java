// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;

/// An extent to load, and the alignment that its address in memory must have.
///
/// @param alignmentBytes a power of two, at most [#MAX_ALIGNMENT_BYTES]
public record ExtentRequest(Extent extent, int alignmentBytes) {
  /// The largest alignment: enough for every dtype and for vector loads.
  public static final int MAX_ALIGNMENT_BYTES = 256;

  /// The alignment below which a GPU's matrix products take two to eight times as long: their fast kernels move 16 bytes at
  /// once. Half of all safetensors files have their tensors at odd multiples of 8.
  public static final int KERNEL_ALIGNMENT_BYTES = 16;

  public ExtentRequest {
    if (Integer.bitCount(alignmentBytes) != 1 || alignmentBytes > MAX_ALIGNMENT_BYTES) {
      throw new MisuseException("no alignment: " + alignmentBytes);
    }
  }
}
