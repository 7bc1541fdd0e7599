// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Configurations of quantised weights that would take too much time or memory.
class HostileQuantisedTest {
  @TempDir private Path folder;

  /// The patterns are one whose match practically never ends, one that is invalid, and one for
  /// which the matcher recurses too deeply.
  @ParameterizedTest
  @ValueSource(strings = {"(a*)*b", "(a", "(a|b)*c"})
  void aPatternThatCannotBeMatchedIsRefused(String pattern) {
    NamePatterns patterns = new NamePatterns(Location.of(folder));
    // Other names have used most of the limit.
    patterns.count(390_000_000);
    String name = "a".repeat(100_000);
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> patterns.matches(pattern, name));
    assertThat(fault.kind()).isEqualTo("bad-pattern");
  }

  /// A configuration of many small objects would take a hundred times its bytes.
  @Test
  void aConfigurationOfTooManyEntriesIsRefused() throws IOException {
    Path file = folder.resolve("config.json");
    Files.writeString(file, "{\"a\":[" + "{\"\":1},".repeat(250_000) + "1]}");
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), file)) {
      MalformedFileException fault =
          catchThrowableOfType(MalformedFileException.class, () -> JsonTree.read(bytes));
      assertThat(fault.kind()).isEqualTo("too-many-entries");
    }
  }
}
