// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// That `docs/cufile.md` names all that is bound here, and nothing that is not there.
class CuFilePageTest {
  private static final Path PAGE = Path.of("..", "docs", "cufile.md");
  private static final Path MAIN = Path.of("src", "main", "java");
  private static final Path TESTS = Path.of("src", "test", "java");
  private static final Pattern SYMBOL = Pattern.compile("\"(cuFile[A-Z]\\w+)\"");
  private static final Pattern MEMBER = Pattern.compile("`(CuFile\\w+)\\.(\\w+)`");
  private static final Pattern TEST = Pattern.compile("`(\\w+Test)`");

  private final String page = read(PAGE);
  private final List<List<String>> rows = rows(page);

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<List<String>> rows(String page) {
    return page.lines()
        .filter(line -> line.startsWith("| ") && !line.startsWith("| ---"))
        .map(line -> Arrays.stream(line.split("\\|", -1)).map(String::strip).toList())
        .map(cells -> cells.subList(1, cells.size() - 1))
        .toList();
  }

  /// Each file's text, of those whose names match.
  private static List<String> sources(Path folder, String names) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files
          .filter(file -> file.getFileName().toString().matches(names))
          .map(CuFilePageTest::read)
          .toList();
    }
  }

  /// The texts of the bindings with such a name: those of the main code, and those that only tests call.
  private static List<String> bindings(String name) throws IOException {
    List<String> all = new ArrayList<>(sources(MAIN, name + "\\.java"));
    all.addAll(sources(TESTS, name + "(?<!Test|Contract)\\.java"));
    return all;
  }

  private boolean hasRow(String... cells) {
    return rows.stream().anyMatch(row -> row.containsAll(List.of(cells)));
  }

  @Test
  void everyFunctionThatIsBoundHasARow() throws IOException {
    Set<String> symbols = new TreeSet<>();
    for (String source : bindings("CuFile\\w*")) {
      SYMBOL.matcher(source).results().map(found -> found.group(1)).forEach(symbols::add);
    }
    assertThat(symbols)
        .hasSizeGreaterThan(30)
        .allSatisfy(symbol -> assertThat(hasRow("`" + symbol + "`")).as(symbol).isTrue());
  }

  @Test
  void everyCodeHasARow() {
    for (CuFileCode code : CuFileCode.values()) {
      assertThat(hasRow(Integer.toString(code.code()), "`" + code.name() + "`"))
          .as(code.name())
          .isTrue();
    }
  }

  @Test
  void everySettingHasARow() {
    List<Enum<?>> settings = new ArrayList<>();
    settings.addAll(List.of(CuFileParameters.Size.values()));
    settings.addAll(List.of(CuFileParameters.Flag.values()));
    settings.addAll(List.of(CuFileParameters.Text.values()));
    for (Enum<?> setting : settings) {
      assertThat(
              hasRow(
                  "`CUFILE_PARAM_" + setting.name() + "`",
                  "`" + setting.getDeclaringClass().getSimpleName() + "`"))
          .as(setting.name())
          .isTrue();
    }
  }

  @Test
  void noCellIsEmpty() {
    assertThat(rows).hasSizeGreaterThan(100).noneMatch(row -> row.contains(""));
  }

  @Test
  void theMembersAndTestsAreThere() throws IOException {
    List<String> unknown = new ArrayList<>();
    for (MatchResult found : MEMBER.matcher(page).results().toList()) {
      String type = found.group(1);
      String member = found.group(2);
      String source = String.join("", bindings(type));
      if (!source.matches("(?s).*\\b" + member + "\\b.*")) {
        unknown.add(found.group());
      }
    }
    for (MatchResult found : TEST.matcher(page).results().toList()) {
      if (sources(TESTS, found.group(1) + "\\.java").isEmpty()) {
        unknown.add(found.group());
      }
    }
    assertThat(unknown).isEmpty();
  }
}
