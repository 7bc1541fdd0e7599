// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Text from a file cannot add a line to a message, in any exception.
class OneLineTest {
  private static final Path FILE = Path.of("weights");

  @Provide
  Arbitrary<String> hostile() {
    return Arbitraries.strings()
        .withChars(
            'a', '\n', '\r', '\t', '\0', '\u0085', '\u2028', '\u2029', '\u001b', '\ud83d', '\ude00')
        .ofMaxLength(700);
  }

  @Property
  void everyMessageIsOneLine(@ForAll("hostile") String text) {
    Path file = Path.of(text.replaceAll("[\\x00\\p{Cs}]", "").replace("😀", ""));
    assertOneLine(new MalformedFileException(file, 5, "a-kind", text));
    assertOneLine(new TransferException("pread", text, new Failure.EndOfFile(1)));
    assertOneLine(new MisuseException(text));
    assertOneLine(new DeviceUnavailableException(text));
  }

  private static void assertOneLine(GantryException exception) {
    String message = exception.getMessage();
    assertThat(message.chars()).noneMatch(Character::isISOControl);
    assertThat(message).doesNotContain("\u2028", "\u2029");
    // A lone surrogate cannot be encoded in UTF-8, and would be printed as a question mark.
    assertThat(StandardCharsets.UTF_8.newEncoder().canEncode(message)).isTrue();
  }

  @Test
  void textCannotTurnTheDirectionOfWriting() {
    assertThat(OneLine.of("a\u202egpj.\u2066b\u200f")).isEqualTo("a\\u202egpj.\\u2066b\\u200f");
    for (int turn :
        "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
            .chars()
            .toArray()) {
      assertThat(OneLine.of("a" + (char) turn)).isEqualTo("a\\u%04x".formatted(turn));
    }
  }

  @Property
  void whatIsShortAndHarmlessStaysAsItIs(@ForAll("harmless") String text) {
    assertThat(OneLine.of(text)).isEqualTo(text);
  }

  @Provide
  Arbitrary<String> harmless() {
    return Arbitraries.of("a", "ü", "層", "😀", " ", "\\", "\"")
        .list()
        .ofMaxSize(150)
        .map(list -> String.join("", list));
  }

  @ParameterizedTest
  @CsvSource({"198, 99", "199, 99", "200, 100", "201, 101"})
  void aCutNeverGoesThroughACharacter(int before, int after) {
    String text = "a".repeat(before) + "😀" + "b".repeat(200) + "😀" + "c".repeat(after - 1);
    String line = OneLine.of(text);
    assertThat(line).hasSizeLessThanOrEqualTo(301).contains("…").doesNotContain("\\u");
  }

  @Test
  void aHugeNameDoesNotHideWhatFollows() {
    String subject = "x".repeat(1 << 20) + " offset 4096 length 8192";
    assertThat(new TransferException("pread", subject, new Failure.EndOfFile(7)))
        .hasMessageEndingWith("x offset 4096 length 8192: unexpected end of file, 7 bytes missing")
        .message()
        .hasSizeLessThan(400);
  }

  @Test
  void aMessageOfSeveralNamesIsWhole() {
    String message =
        "no tensor for " + "'encoder.layer.11.attention.self.query.weight', ".repeat(12);
    assertThat(new MisuseException(message)).hasMessage(message);
    assertThat(new MisuseException(message.repeat(1000))).message().hasSizeLessThan(1000);
  }

  @Test
  void theMessageNamesFileOffsetKindAndDetail() {
    MalformedFileException exception =
        new MalformedFileException(FILE, 8, "header-too-large", "a\nb\ud800");
    assertThat(exception).hasMessage("weights: offset 8: header-too-large: a\\u000ab\\ud800");
    assertThat(exception.file()).isEqualTo(Location.of(FILE));
    assertThat(exception.offset()).isEqualTo(8);
    assertThat(exception.kind()).isEqualTo("header-too-large");
  }

  @Test
  void theNameOfAFileCannotForgeALineEither() {
    assertThat(new MalformedFileException(Path.of("a\nb"), 0, "kind", ""))
        .hasMessage("a\\u000ab: offset 0: kind: ");
  }
}
