// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SourceOptionsTest {
  private static SourceOptions of(String path) {
    return new SourceOptions(Map.of("path", path));
  }

  /// Spark's own sources take a path with its scheme as it is, too.
  @ParameterizedTest
  @CsvSource({
    "/data/a b, /data/a b",
    "file:/data/a b, /data/a b",
    "file:///data/a%20b, /data/a%20b",
    "file:////data/a, /data/a",
    "file:a/b, a/b"
  })
  void aLocalPathHasNoEscapes(String path, String wanted) {
    assertThat(of(path).path()).isEqualTo(Path.of(wanted));
  }

  @Test
  void anotherHostsFileIsNoLocalOne() {
    assertThatThrownBy(() -> of("file://host/data").path())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("all executors see (was file://host/data)");
  }
}
