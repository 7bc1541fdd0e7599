// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.natives.Availability.Absent;
import dev.gantry.testing.stub.NativeStubs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The reasons for refusing a file that is no library for this process.
class NativeLibraryTest {
  @TempDir private Path folder;

  private static String reason(Availability<NativeLibrary> absent) {
    return ((Absent<NativeLibrary>) absent).reason();
  }

  @Test
  void aTextFileIsNoLibrary() throws IOException {
    Path file = Files.writeString(folder.resolve("libcufile.so.0"), "export CUFILE=1\n");

    assertThat(reason(NativeLibrary.load(List.of(file.toString()))))
        .isEqualTo(file + ": it is not a shared library");
  }

  @Test
  void anEmptyFileIsNoLibrary() throws IOException {
    Path file = Files.createFile(folder.resolve("libcufile.so.0"));

    assertThat(reason(NativeLibrary.load(List.of(file.toString()))))
        .isEqualTo(file + ": it is not a shared library");
  }

  /// The dynamic loader's own message would say that the file is missing.
  @Test
  void aLibraryForAnotherProcessorIsCalledSo() throws IOException {
    byte[] library = Files.readAllBytes(NativeStubs.cuFile());
    int powerPc = 21;
    library[18] = (byte) powerPc;
    Path file = Files.write(folder.resolve("libcufile.so.0"), library);

    assertThat(reason(NativeLibrary.load(List.of(file.toString()))))
        .startsWith(file + ": it is a library for another processor than ");
  }

  @Test
  void namesThatNoFileHasAreListedOnce() {
    String first = folder.resolve("liba.so").toString();
    String second = folder.resolve("libb.so").toString();

    assertThat(reason(NativeLibrary.load(List.of(first, second))))
        .isEqualTo("not found: " + first + "; " + second);
  }

  @Test
  void aSettingThatNamesNoLibraryIsTold() {
    String file = folder.resolve("libcufile.so").toString();

    assertThat(NativeLibrary.named("GANTRY_CUFILE_LIBRARY", file).map(NativeLibraryTest::reason))
        .hasValueSatisfying(
            reason -> assertThat(reason).startsWith("GANTRY_CUFILE_LIBRARY names " + file + ": "));
    assertThat(NativeLibrary.named("GANTRY_CUFILE_LIBRARY", " ")).isEqualTo(Optional.empty());
    assertThat(NativeLibrary.named("GANTRY_CUFILE_LIBRARY", null)).isEqualTo(Optional.empty());
  }
}
