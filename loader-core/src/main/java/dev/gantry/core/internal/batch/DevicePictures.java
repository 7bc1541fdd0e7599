// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import java.lang.foreign.MemorySegment;
import java.nio.IntBuffer;

/// Decodes pictures on the device that a batch goes to, straight to their places there. While a host writer of such a
/// batch runs, [#CURRENT] is bound to it; it is not bound while batches go to host memory. Thread-safe.
@FunctionalInterface
public interface DevicePictures {
  ScopedValue<DevicePictures> CURRENT = ScopedValue.newInstance();

  /// Decodes a JPEG in place of a host writer, and resizes it.
  ///
  /// @param jpeg the whole file, of three components
  /// @param target the place that the host writer would write, within its memory
  /// @return whether the pixels will be in the slot; if not, the host writer must write them
  /// @throws dev.gantry.core.TransferException if the device fails
  boolean decode(MemorySegment jpeg, Resampling how, MemorySegment target);

  /// Says how each pixel of a result of RGB of 8 bits is made of the decoded picture's.
  ///
  /// @param sourceWidth the decoded picture's width, in pixels
  /// @param sourceHeight its height
  /// @param width the result's width
  /// @param height the result's height
  /// @param columnWeights the weights that `table` has for each column of the result
  /// @param rowWeights the weights that it has for each row
  /// @param mirrored whether the result is mirrored from left to right
  /// @param table for each column the first pixel that counts, then how many count; the same for each row; then the
  ///     weights of each column, and those of each row, with 22 bits behind the point
  record Resampling(
      int sourceWidth,
      int sourceHeight,
      int width,
      int height,
      int columnWeights,
      int rowWeights,
      boolean mirrored,
      IntBuffer table) {}
}
