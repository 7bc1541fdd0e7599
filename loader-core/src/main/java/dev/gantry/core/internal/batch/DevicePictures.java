// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import java.lang.foreign.MemorySegment;
import java.nio.IntBuffer;

/// Decodes pictures on the device that a batch goes to, straight to their offsets in the slot.
/// While a host writer of such a batch runs, [#CURRENT] is bound to the decoder of that device; it
/// is not bound while batches go to host memory. Thread-safe.
@FunctionalInterface
public interface DevicePictures {
  ScopedValue<DevicePictures> CURRENT = ScopedValue.newInstance();

  /// The field's decoder that [#run] runs.
  ScopedValue<Object> DECODER = ScopedValue.newInstance();

  /// A call of a field's decoder.
  @FunctionalInterface
  interface Call<X extends Exception> {
    void run() throws X;
  }

  /// Runs a field's decoder, which may leave pictures to the device. A decoder that this one calls
  /// may not, since the caller may read or change the pixels.
  static <X extends Exception> void run(Object decoder, Call<X> call) throws X {
    if (!CURRENT.isBound()) {
      call.run();
      return;
    }
    Object _ =
        ScopedValue.where(DECODER, decoder)
            .call(() -> {
              call.run();
              return decoder;
            });
  }

  /// Whether a decoder may leave pictures to the device.
  static boolean serves(Object decoder) {
    return DECODER.isBound() && decoder.equals(DECODER.get());
  }

  /// Decodes a JPEG in place of a host writer, and resizes it.
  ///
  /// @param jpeg the whole file, of three components
  /// @param target the range of the host writer's memory to which it would write the pixels
  /// @return whether the pixels will be in the slot; if not, the host writer must write them
  /// @throws dev.gantry.core.TransferException if the device fails
  boolean decode(MemorySegment jpeg, Resampling how, MemorySegment target);

  /// Says how each pixel of a result of RGB of 8 bits is computed from pixels of the decoded
  /// picture.
  ///
  /// @param sourceWidth the decoded picture's width, in pixels
  /// @param sourceHeight the decoded picture's height, in pixels
  /// @param width the result's width, in pixels
  /// @param height the result's height, in pixels
  /// @param columnWeights the number of weights that `table` has for each column of the result
  /// @param rowWeights the number of weights that `table` has for each row of the result
  /// @param mirrored whether the result is mirrored from left to right
  /// @param table for each column the first pixel that counts, then how many count; the same for
  ///     each row; then the weights of each column, and the weights of each row, as fixed-point
  ///     numbers with 22 fractional bits
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
