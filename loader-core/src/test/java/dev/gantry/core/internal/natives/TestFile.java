// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.nio.file.Path;

/// An existing file with a descriptor for reading and writing, which a test may pass on.
public record TestFile(Path path, int descriptor) implements AutoCloseable {
  private static final int O_RDWR = 2;

  public static TestFile open(Path path) {
    Linker linker = Linker.nativeLinker();
    try (Arena arena = Arena.ofConfined()) {
      int descriptor =
          (int)
              linker
                  .downcallHandle(
                      linker.defaultLookup().findOrThrow("open"),
                      FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT),
                      Linker.Option.firstVariadicArg(2))
                  .invoke(arena.allocateFrom(path.toString()), O_RDWR);
      if (descriptor < 0) {
        throw new AssertionError("cannot open " + path);
      }
      return new TestFile(path, descriptor);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public void close() {
    Linker linker = Linker.nativeLinker();
    try {
      int result =
          (int)
              linker
                  .downcallHandle(
                      linker.defaultLookup().findOrThrow("close"),
                      FunctionDescriptor.of(JAVA_INT, JAVA_INT))
                  .invoke(descriptor);
      if (result != 0) {
        throw new AssertionError("cannot close " + path);
      }
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
