// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// Checks that no sentence in the comments of all modules begins with a preposition or a relative
/// clause. Readers had to guess the noun of such sentences.
class CommentsTest {
  private static final Path ROOT = Path.of("..");

  private static final Pattern COMMENT = Pattern.compile("\\s*///?(?: (.*))?");

  /// Matches a line that begins a new paragraph.
  private static final Pattern NEW_PARAGRAPH = Pattern.compile("|@.*|[-*|].*|\\d+\\. .*|```.*");

  private static final Pattern RIDDLE =
      Pattern.compile("(?:^|(?<=[.:!?] )|(?<=^- ))(Of|And|Until|By|What|That) \\S.*");

  @Test
  void noSentenceBeginsWithoutItsNoun() throws IOException {
    List<String> found = new ArrayList<>();
    for (Path file : sources()) {
      for (String paragraph : paragraphs(Files.readAllLines(file))) {
        Matcher riddle = RIDDLE.matcher(paragraph);
        if (riddle.find()) {
          found.add(ROOT.relativize(file) + ": " + riddle.group());
        }
      }
    }
    assertThat(found).isEmpty();
  }

  private static List<Path> sources() throws IOException {
    try (Stream<Path> files = Files.walk(ROOT)) {
      List<Path> sources =
          files
              .filter(file -> file.toString().endsWith(".java"))
              .filter(file -> !file.toString().contains("/target/"))
              .toList();
      assertThat(sources).hasSizeGreaterThan(1000);
      return sources;
    }
  }

  /// Returns the text of each paragraph of comments as one line.
  private static List<String> paragraphs(List<String> lines) {
    List<String> all = new ArrayList<>();
    StringBuilder paragraph = new StringBuilder();
    for (String line : lines) {
      Matcher comment = COMMENT.matcher(line);
      String text = comment.matches() && comment.group(1) != null ? comment.group(1).strip() : "";
      if (NEW_PARAGRAPH.matcher(text).matches()) {
        all.add(paragraph.toString());
        paragraph.setLength(0);
      }
      paragraph.append(paragraph.isEmpty() ? "" : " ").append(text);
    }
    all.add(paragraph.toString());
    return all;
  }
}
