// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// A function whose arguments and result are pointers and whole numbers. Thread-safe.
///
/// On x86-64 and on AArch64, such a value takes one register, or eight bytes on the stack,
/// whatever its width. For that reason one prototype serves all functions of up to seven
/// arguments; a function ignores arguments beyond those that it declares. The prototype is linked
/// once, and takes the function's address as its first argument: the JVM compiles calls of a
/// constant handle into the code around them.
///
/// @param symbol the function's address; NULL if the library lacks it, and then it must not be
///     called
record NativeFunction(String name, MemorySegment symbol) {
  private static final MethodHandle CALL =
      Linker.nativeLinker()
          .downcallHandle(
              FunctionDescriptor.of(
                  JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
                  JAVA_LONG));

  /// Calls the function and returns its result. If the result is an `int`, only the lower 32 bits
  /// are defined.
  long call(long a) {
    return call(a, 0, 0, 0, 0, 0, 0);
  }

  long call(long a, long b) {
    return call(a, b, 0, 0, 0, 0, 0);
  }

  long call(long a, long b, long c, long d, long e, long f, long g) {
    try {
      return (long) CALL.invokeExact(symbol, a, b, c, d, e, f, g);
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }
}
