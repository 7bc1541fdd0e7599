// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.lang.foreign.Arena;
import java.lang.invoke.MethodHandle;

/// The environment that C libraries of this process see. Java's own is a copy from the process's start, and does not
/// change.
///
/// The C library does not guard it against readers on other threads: change it rarely, and only for a moment.
public final class ProcessEnvironment {
  // int setenv(const char *name, const char *value, int overwrite)
  private static final MethodHandle SETENV = Libc.function("setenv");

  // int unsetenv(const char *name)
  private static final MethodHandle UNSETENV = Libc.function("unsetenv");

  private ProcessEnvironment() {}

  public static void set(String name, String value) {
    try (Arena arena = Arena.ofConfined()) {
      long to = arena.allocateFrom(value).address();
      require(Libc.intCall(SETENV, arena.allocateFrom(name).address(), to, 1, 0, 0), "setenv");
    }
  }

  public static void unset(String name) {
    try (Arena arena = Arena.ofConfined()) {
      long variable = arena.allocateFrom(name).address();
      require(Libc.intCall(UNSETENV, variable, 0, 0, 0, 0), "unsetenv");
    }
  }

  /// Throws if the call failed, which happens only for a name with `=`, or without memory.
  private static void require(int status, String function) {
    if (status != 0) {
      throw new IllegalStateException(function + " failed");
    }
  }
}
