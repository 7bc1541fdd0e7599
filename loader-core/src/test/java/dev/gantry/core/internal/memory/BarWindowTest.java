// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The BAR1 window, in the format of sysfs.
class BarWindowTest {
  private static final String NONE = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";

  @TempDir Path folder;

  private long bytes(String windows) throws IOException {
    return CudaContext.barBytes(Files.writeString(folder.resolve("resource"), windows));
  }

  @Test
  void isTheSecondWhereTheFirstHas32Bits() throws IOException {
    assertThat(
            bytes(
                "0x00000000fa000000 0x00000000faffffff 0x0000000000040200\n"
                    + "0x0000004000000000 0x000000400fffffff 0x000000000014220c\n"
                    + NONE
                    + "0x0000004010000000 0x0000004011ffffff 0x000000000014220c\n"
                    + NONE.repeat(2)))
        .isEqualTo(256L << 20);
  }

  @Test
  void isTheThirdWhereTheFirstHas64Bits() throws IOException {
    assertThat(
            bytes(
                "0x000023ffff000000 0x000023ffffffffff 0x000000000014220c\n"
                    + NONE
                    + "0x0000220000000000 0x000023ffffffffff 0x000000000014220c\n"
                    + NONE
                    + "0x0000240000000000 0x0000240001ffffff 0x000000000014220c\n"
                    + NONE.repeat(2)))
        .isEqualTo(2L << 40);
  }

  @Test
  void isNothingWhereSysfsDoesNotSay() throws IOException {
    assertThat(bytes("")).isZero();
    assertThat(bytes(NONE.repeat(7))).isZero();
    assertThat(bytes("what is this\n")).isZero();
    assertThat(CudaContext.barBytes(folder.resolve("nowhere"))).isZero();
  }
}
