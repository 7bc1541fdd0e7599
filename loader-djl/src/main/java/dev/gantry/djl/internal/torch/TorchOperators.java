// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/// libtorch's operators that DJL has no method for, or only a slower one. They are called through
/// libtorch's C function for any operator. Gradients are recorded as for other operators.
/// Thread-safe.
///
/// The C function takes each argument in eight bytes. A tensor is passed as a handle, which the
/// function deletes. An optional argument is passed as the address of eight bytes, which the
/// function deletes, or as 0. Other arguments are passed as their bits. The result replaces the
/// first argument.
public final class TorchOperators {
  private static final MemorySegment ATTENTION = text("aten::scaled_dot_product_attention");
  private static final MemorySegment LINEAR = text("aten::linear");
  private static final MemorySegment VERSION = text("aten::_version");
  private static final MemorySegment DETACH = text("aten::detach");
  private static final MemorySegment OVERLOAD = text("");

  // AOTITorchError aoti_torch_call_dispatcher(
  //     const char *opName, const char *overloadName, StableIValue *stack);
  private final NativeFunction call;

  private final TorchLibrary library;

  TorchOperators(NativeFunction call, TorchLibrary library) {
    this.call = call;
    this.library = library;
  }

  private static MemorySegment text(String text) {
    return Arena.global().allocateFrom(text, StandardCharsets.US_ASCII);
  }

  /// Computes attention: `softmax(scale · query · keyᵀ + mask) · value`.
  ///
  /// @param query a handle, `[batch, heads, length, size]`
  /// @param key a handle, `[batch, groups, all, size]`; `value` has the same shape
  /// @param mask a handle of a tensor that is added to the scores and has the query's type; 0 for
  ///     none
  /// @param causal whether row `i` sees only the columns 0 to `i`; not together with a mask
  /// @param grouped whether there are fewer groups than heads
  /// @return a new handle, `[batch, heads, length, size]`
  /// @throws TransferException if libtorch refuses, which has then written why to the standard error stream
  public long attend(
      long query, long key, long value, long mask, boolean causal, double scale, boolean grouped) {
    return call(
        ATTENTION,
        query,
        library.share(query),
        library.share(key),
        library.share(value),
        mask == 0 ? 0 : optional(library.share(mask)),
        Double.doubleToRawLongBits(0),
        causal ? 1 : 0,
        optional(Double.doubleToRawLongBits(scale)),
        grouped ? 1 : 0);
  }

  /// Computes `x · weightᵀ + bias` in one product that adds the bias. For more than two axes, the
  /// C++ function that DJL calls makes a product and an addition.
  ///
  /// @param x a handle, `[…, inputs]`
  /// @param weight `[outputs, inputs]`
  /// @param bias `[outputs]`; 0 for none
  /// @return a new handle, `[…, outputs]`
  /// @throws TransferException if libtorch refuses, which has then written why to the standard error stream
  public long linear(long x, long weight, long bias) {
    return call(
        LINEAR,
        x,
        library.share(x),
        library.share(weight),
        bias == 0 ? 0 : optional(library.share(bias)));
  }

  /// Returns a handle of another tensor with the same memory. The memory stays until the handle is deleted, also
  /// if the first tensor is given other memory, as DJL's `NDArray.set` and `copyTo` do.
  public long detach(long tensor) {
    return call(DETACH, tensor, library.share(tensor));
  }

  /// Returns the tensor's version: a number that each operator raises which changes the tensor in place.
  ///
  /// @throws TransferException if the tensor has none, since it was made in libtorch's inference mode
  public long version(long tensor) {
    return call(VERSION, tensor, library.share(tensor));
  }

  /// @param first the handle whose shape an error names
  private long call(MemorySegment operator, long first, long... arguments) {
    MemorySegment stack = NativeHeap.allocate((long) arguments.length * Long.BYTES);
    try {
      MemorySegment.copy(arguments, 0, stack, JAVA_LONG, 0, arguments.length);
      long error = call.call(operator.address(), OVERLOAD.address(), stack.address(), 0, 0, 0, 0);
      if ((int) error != 0) {
        throw new TransferException(
            operator.getString(0), library.shape(first).toString(), new Failure.Torch((int) error));
      }
      return stack.getAtIndex(JAVA_LONG, 0);
    } finally {
      NativeHeap.free(stack);
    }
  }

  /// Returns the address of eight bytes that hold `bits`. libtorch frees them.
  private static long optional(long bits) {
    MemorySegment cell = NativeHeap.allocate(Long.BYTES);
    cell.set(JAVA_LONG, 0, bits);
    return cell.address();
  }
}
