// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class JsonReaderTest {
  /// Bytes on both sides of the section that do not belong to it.
  private static final String OTHER = "\"}]";

  @TempDir Path folder;

  private FileBytes file(String json) throws IOException {
    return FileBytes.open(
        GantrySession.shared(),
        Files.writeString(folder.resolve("made.json"), OTHER + json + OTHER));
  }

  private static JsonReader section(FileBytes bytes) {
    return new JsonReader(bytes, OTHER.length(), bytes.length() - OTHER.length());
  }

  /// Returns the fault with its offset from the start of the section.
  private String fault(String json) throws IOException {
    try (FileBytes bytes = file(json)) {
      JsonReader reader = section(bytes);
      MalformedFileException fault =
          catchThrowableOfType(
              MalformedFileException.class,
              () -> {
                reader.skip();
                reader.end();
              });
      assertThat(fault).as(json).isNotNull();
      assertThat(fault.getMessage())
          .hasLineCount(1)
          .doesNotContain("[Source", "StreamRead", "enable `");
      return fault.kind() + " " + (fault.offset() - OTHER.length());
    }
  }

  /// For a fault within a number, Jackson reports the offset of the sign, point or exponent before
  /// the fault.
  @ParameterizedTest(name = "{0}: {1}")
  @CsvSource(
      quoteCharacter = '`',
      ignoreLeadingAndTrailingWhitespace = false,
      value = {
        "``,unexpected-end 0",
        "` \t`,unexpected-end 2",
        "`[1`,unexpected-end 2",
        "`{\"a\":1`,unexpected-end 6",
        "`[1, ]`,invalid-json 4",
        "`{\"é\":1,\n}`,invalid-json 9",
        "`[,]`,invalid-json 1",
        "`{,}`,invalid-json 1",
        "`[1}`,invalid-json 2",
        "`[\",\"}`,invalid-json 4",
        "`[5 0]`,invalid-json 3",
        "`[NaN]`,invalid-json 3",
        "`{\"a\" 0}`,invalid-json 5",
        "`{0:1}`,invalid-json 1",
        "`[.5]`,invalid-json 1",
        "`[/**/]`,invalid-json 1",
        "`[1\n.]`,invalid-json 3",
        "`[\"é\nb\"]`,invalid-json 4",
        "`[\":1.\n\"]`,invalid-json 5",
        "`{\"a\tb\":1}`,invalid-json 3",
        "`{\"a\":1,\",0\n\":1}`,invalid-json 10",
        "`[\u0000]`,invalid-json 1",
        "`[1.\n2]`,invalid-json 2",
        "`{\"a\":-\n}`,invalid-json 6",
        "`[2,\n-01]`,invalid-json 5",
        "`[1.5E+]`,invalid-json 2",
        "`[\",]\\]\"]`,invalid-json 5",
        "`{\"\\u12\n\":1}`,invalid-json 6",
        "`[\"😀\\ud83d\"]`,lone-surrogate 1",
        "`[] ]`,trailing-characters 3",
        "`[] \"`,trailing-characters 3",
        "`\uFEFF[]`,invalid-json 0",
        "`[\uFEFF]`,invalid-json 1",
      })
  void aFaultIsNamedWhereItShows(String json, String expected) throws IOException {
    assertThat(fault(json)).isEqualTo(expected);
  }

  @Test
  void theTextThatIsReadInAdvanceIsJson() {
    assertThatCode(JsonReader::loadClasses).doesNotThrowAnyException();
  }

  @Test
  void boundsAreToldApart() throws IOException {
    int longest = 16 * 1024 * 1024;
    String deepest = "[".repeat(JsonReader.MAX_DEPTH);
    assertThat(fault(deepest + "1.")).startsWith("invalid-json");
    assertThat(fault(deepest + "[")).isEqualTo("nesting-too-deep " + JsonReader.MAX_DEPTH);
    assertThat(fault(deepest + "9".repeat(5000))).startsWith("number-too-long");
    assertThat(fault("{\"a\":" + "9".repeat(5000) + "}")).startsWith("number-too-long");
    assertThat(fault(deepest + '"' + "x".repeat(longest + 1) + '"')).startsWith("string-too-long");
    assertThat(fault("{\"" + "x".repeat(longest + 1) + "\":1}")).startsWith("string-too-long");
    assertThat(fault("[\"" + "x".repeat(longest) + "\",\"" + "x".repeat(longest) + "\",]"))
        .startsWith("invalid-json");
  }

  @ParameterizedTest
  @ValueSource(strings = {"-0", "2.0", "1e2", "1E+02", "-0.10", "18446744073709551616"})
  void aNumberIsGivenAsItIsWritten(String number) throws IOException {
    try (FileBytes bytes = file(number)) {
      JsonReader reader = section(bytes);
      assertThat(reader.peek()).isEqualTo(JsonReader.Kind.NUMBER);
      assertThat(reader.number()).isEqualTo(number);
      reader.end();
    }
  }

  /// The text spans many edges of the buffer, so that a character can lie on both sides of an
  /// edge.
  @ParameterizedTest
  @ValueSource(strings = {"a", "aaé", "☃", "😀", "aé☃😀"})
  void offsetsAreOfBytesWhateverTheText(String letters) throws IOException {
    Random random = new Random(7);
    int[] alphabet = letters.codePoints().toArray();
    StringBuilder json = new StringBuilder("[{");
    List<Long> expected = new ArrayList<>();
    long written = OTHER.length() + 2L;
    for (int i = 0; i < 300; i++) {
      StringBuilder name = new StringBuilder();
      random
          .ints(random.nextInt(2000), 0, alphabet.length)
          .forEach(at -> name.appendCodePoint(alphabet[at]));
      String member = "\"" + name + "\" : ";
      expected.add(written);
      expected.add(written + member.getBytes(StandardCharsets.UTF_8).length);
      json.append(member).append("true, ");
      written += (member + "true, ").getBytes(StandardCharsets.UTF_8).length;
    }
    json.append("\"\":1}]");
    List<Long> found = new ArrayList<>();
    try (FileBytes bytes = file(json.toString())) {
      JsonReader reader = section(bytes);
      reader.peek();
      reader.beginArray();
      reader.peek();
      for (boolean more = reader.beginObject(); more; more = reader.nextMember()) {
        reader.memberName();
        found.add(reader.valueOffset());
        reader.peek();
        found.add(reader.valueOffset());
        reader.skip();
      }
    }
    assertThat(found.subList(0, expected.size())).isEqualTo(expected);
  }

  @Test
  void aValueOfAnotherKindIsNamedWithTheKindThatItMustHave() throws IOException {
    Path file = Files.writeString(folder.resolve("list.json"), "[5]");
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), file)) {
      assertThatThrownBy(() -> JsonTree.read(bytes))
          .hasMessage("%s: offset 0: no-object: the JSON must be an object, not an array", file);
      assertThatThrownBy(() -> JsonTree.readList(bytes))
          .hasMessage("%s: offset 1: no-object: the JSON must be an object, not a number", file);
    }
  }
}
