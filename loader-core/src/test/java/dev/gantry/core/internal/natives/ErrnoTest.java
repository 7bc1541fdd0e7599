// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Failure;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ErrnoTest {
  // Calls `const char *strerrordesc_np(int errnum)` or `strerrorname_np`, whose texts do not
  // depend on the locale.
  private static String ask(String function, int code) throws Throwable {
    Linker linker = Linker.nativeLinker();
    MethodHandle handle =
        linker.downcallHandle(
            linker.defaultLookup().findOrThrow(function),
            FunctionDescriptor.of(
                ADDRESS.withTargetLayout(MemoryLayout.sequenceLayout(256, JAVA_BYTE)), JAVA_INT));
    return ((MemorySegment) handle.invoke(code)).getString(0);
  }

  @ParameterizedTest
  @EnumSource
  void saysWhatTheCLibrarySays(Errno errno) throws Throwable {
    assertThat(errno.name()).isEqualTo(ask("strerrorname_np", errno.code()));
    assertThat(Errno.failure(errno.code()).meaning())
        .isEqualTo(ask("strerrordesc_np", errno.code()));
  }

  @Test
  void aCodeThatIsNotInTheTableKeepsItsNumber() {
    assertThat(Errno.failure(4095))
        .isEqualTo(new Failure.Errno(4095, "unknown", "no such code in our table"));
    assertThat(Errno.failure(5)).isEqualTo(new Failure.Errno(5, "EIO", "Input/output error"));
  }
}
