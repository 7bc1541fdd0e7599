// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// The environment that C libraries of this process see. Java has a copy from the process's start,
/// which does not change.
///
/// The C library does not guard it against readers on other threads: change it seldom and for a
/// moment.
public final class ProcessEnvironment {
  private static final Linker LINKER = Linker.nativeLinker();

  // int setenv(const char *name, const char *value, int overwrite)
  private static final MethodHandle SETENV =
      LINKER.downcallHandle(
          LINKER.defaultLookup().findOrThrow("setenv"),
          FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));

  // int unsetenv(const char *name)
  private static final MethodHandle UNSETENV =
      LINKER.downcallHandle(
          LINKER.defaultLookup().findOrThrow("unsetenv"), FunctionDescriptor.of(JAVA_INT, ADDRESS));

  private ProcessEnvironment() {}

  public static void set(String name, String value) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment variable = arena.allocateFrom(name);
      require((int) SETENV.invokeExact(variable, arena.allocateFrom(value), 1), "setenv");
    } catch (Throwable thrown) {
      throw CuFileFunction.unchecked(thrown);
    }
  }

  public static void unset(String name) {
    try (Arena arena = Arena.ofConfined()) {
      require((int) UNSETENV.invokeExact(arena.allocateFrom(name)), "unsetenv");
    } catch (Throwable thrown) {
      throw CuFileFunction.unchecked(thrown);
    }
  }

  /// It fails only for a name with `=`, or without memory.
  private static void require(int status, String function) {
    if (status != 0) {
      throw new IllegalStateException(function + " failed");
    }
  }
}
