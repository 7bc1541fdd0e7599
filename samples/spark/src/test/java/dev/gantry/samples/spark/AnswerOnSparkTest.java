// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.spark;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class AnswerOnSparkTest {
  private static final Path MODEL = Path.of("..", "src", "main", "resources", "model");

  @Test
  void everyRowIsAnswered(@TempDir Path folder) throws IOException {
    PrintStream before = System.out;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      AnswerOnSpark.main(
          new String[] {MODEL.toAbsolutePath().toString(), folder.resolve("spark").toString()});
    } finally {
      System.setOut(before);
    }
    assertThat(bytes.toString(StandardCharsets.UTF_8))
        .isEqualToNormalizingNewlines("struct<id:bigint,image:array<float>>\n1000 answers\n");
  }
}
