// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// A function whose arguments and result are pointers and whole numbers, linked when it is first called.
/// Thread-safe.
///
/// On x86-64 and on AArch64, such a value takes one register, or eight bytes on the stack,
/// whatever its width. For that reason one prototype serves all functions of up to seven
/// arguments; a function ignores arguments beyond those that it declares. Linking the prototype
/// costs some 5 ms, and linking another function with it costs nearly nothing.
final class NativeFunction {
  private static final FunctionDescriptor PROTOTYPE =
      FunctionDescriptor.of(
          JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

  private final String name;
  private final MemorySegment symbol;
  private @Nullable MethodHandle linked;

  NativeFunction(String name, MemorySegment symbol) {
    this.name = name;
    this.symbol = symbol;
  }

  String name() {
    return name;
  }

  /// Calls the function and returns its result. If the result is an `int`, only the lower 32 bits
  /// are defined.
  long call(long a) {
    return call(a, 0, 0, 0, 0, 0, 0);
  }

  long call(long a, long b) {
    return call(a, b, 0, 0, 0, 0, 0);
  }

  long call(long a, long b, long c, long d, long e, long f, long g) {
    MethodHandle function = linked;
    if (function == null) {
      // Several threads may link the function at the same time, which does no harm.
      function = Linker.nativeLinker().downcallHandle(symbol, PROTOTYPE);
      linked = function;
    }
    try {
      return (long) function.invokeExact(a, b, c, d, e, f, g);
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }
}
