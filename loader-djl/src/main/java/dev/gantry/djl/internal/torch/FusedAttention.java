// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/// libtorch's attention in one call, `aten::scaled_dot_product_attention`, by its C way to call any operator. Gradients
/// are recorded as for other operators. Thread-safe.
///
/// The way takes each argument in eight bytes: a tensor as a handle, which it deletes; an optional argument as the address of
/// eight bytes, which it deletes, or 0; others as their bits. The result replaces the first argument.
public final class FusedAttention {
  // AOTITorchError aoti_torch_call_dispatcher(
  //     const char *opName, const char *overloadName, StableIValue *stack);
  private final NativeFunction call;

  private final TorchLibrary library;

  private static final MemorySegment NAME = text("aten::scaled_dot_product_attention");
  private static final MemorySegment OVERLOAD = text("");

  FusedAttention(NativeFunction call, TorchLibrary library) {
    this.call = call;
    this.library = library;
  }

  private static MemorySegment text(String text) {
    return Arena.global().allocateFrom(text, StandardCharsets.US_ASCII);
  }

  /// `softmax(scale · query · keyᵀ + mask) · value`.
  ///
  /// @param query a handle, `[batch, heads, length, size]`
  /// @param key `[batch, groups, all, size]`, as `value`
  /// @param mask is added to the scores, of the query's type; 0 for none
  /// @param causal whether each row sees only as many columns as its number, and those before; not with a mask
  /// @param grouped whether there are fewer groups than heads
  /// @return a new handle, `[batch, heads, length, size]`
  /// @throws TransferException if libtorch refuses, which has then written why to the standard error stream
  public long of(
      long query, long key, long value, long mask, boolean causal, double scale, boolean grouped) {
    MemorySegment stack = NativeHeap.allocate(8 * Long.BYTES);
    try {
      stack.setAtIndex(JAVA_LONG, 0, library.share(query));
      stack.setAtIndex(JAVA_LONG, 1, library.share(key));
      stack.setAtIndex(JAVA_LONG, 2, library.share(value));
      stack.setAtIndex(JAVA_LONG, 3, mask == 0 ? 0 : optional(library.share(mask)));
      stack.setAtIndex(JAVA_LONG, 4, Double.doubleToRawLongBits(0));
      stack.setAtIndex(JAVA_LONG, 5, causal ? 1 : 0);
      stack.setAtIndex(JAVA_LONG, 6, optional(Double.doubleToRawLongBits(scale)));
      stack.setAtIndex(JAVA_LONG, 7, grouped ? 1 : 0);
      long error = call.call(NAME.address(), OVERLOAD.address(), stack.address(), 0, 0, 0, 0);
      if ((int) error != 0) {
        throw new TransferException(
            "scaled_dot_product_attention",
            library.shape(query).toString(),
            new Failure.Torch((int) error));
      }
      return stack.getAtIndex(JAVA_LONG, 0);
    } finally {
      NativeHeap.free(stack);
    }
  }

  /// The address of eight bytes that libtorch frees.
  private static long optional(long bits) {
    MemorySegment cell = NativeHeap.allocate(Long.BYTES);
    cell.set(JAVA_LONG, 0, bits);
    return cell.address();
  }
}
