// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.parquet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The library that reads Parquet takes offsets and lengths from the file, so the input must
/// refuse impossible ones.
class MappedInputTest {
  private static final int BYTES = 10;

  @TempDir Path folder;

  private MappedInput open() throws IOException {
    return new MappedInput(Files.write(folder.resolve("file"), new byte[BYTES]));
  }

  @ParameterizedTest
  @CsvSource({"-1, 1", "0, 0", "0, -1", "0, 11", "10, 1", "9223372036854775807, 1"})
  void aPartThatIsNotWithinTheFileIsAnError(long offset, int length) throws IOException {
    try (MappedInput input = open()) {
      assertThatThrownBy(() -> input.readRange(offset, length))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("is not within the file");
    }
  }

  @Test
  void allOfTheFileIsAPart() throws IOException {
    try (MappedInput input = open()) {
      assertThat(input.readRange(0, BYTES).remaining()).isEqualTo(BYTES);
    }
  }
}
