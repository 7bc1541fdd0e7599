// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Checks that the code in the documentation comes from sources that are compiled and run, and
/// that links in the documentation lead to files.
class DocumentationTest {
  private static final Path ROOT = Path.of("..");
  private static final Path SAMPLES = ROOT.resolve("samples");
  private static final Pattern JAVA = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern LINK = Pattern.compile("]\\((?!https?://)([^)#]+)(?:#[^)]*)?\\)");
  private static final Pattern NAME =
      Pattern.compile("`([A-Z][a-z]\\w*[a-z][A-Z]?\\w*)(?:\\.([a-z]\\w*))?`");
  private static final int MAX_README_LINES = 150;

  static Stream<Path> pages() throws IOException {
    return Stream.concat(list(ROOT), list(ROOT.resolve("docs")))
        .filter(file -> file.toString().endsWith(".md"))
        .sorted();
  }

  private static Stream<Path> list(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.toList().stream();
    }
  }

  @ParameterizedTest
  @MethodSource("pages")
  void examplesAreLinesOfPrograms(Path page) throws IOException {
    String programs = programs();
    List<String> inNoProgram =
        JAVA.matcher(Files.readString(page))
            .results()
            .map((MatchResult example) -> withoutIndentation(example.group(1)))
            .filter(example -> !programs.contains(example))
            .toList();
    assertThat(inNoProgram).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("pages")
  void linksLeadToFiles(Path page) throws IOException {
    List<Path> targets =
        LINK.matcher(Files.readString(page))
            .results()
            .map(link -> page.resolveSibling(link.group(1)))
            .toList();
    assertThat(targets).allSatisfy(target -> assertThat(target).exists());
  }

  @Test
  void everySourceNamesItsLicence() throws IOException {
    try (Stream<Path> files = Files.walk(ROOT)) {
      assertThat(
              files
                  .filter(file -> file.toString().endsWith(".java"))
                  .filter(file -> file.toString().contains("/src/"))
                  .filter(file -> !file.toString().matches(".*/(target|consumer|[.]\\w+)/.*")))
          .isNotEmpty()
          .allSatisfy(file ->
              assertThat(file).content().startsWith("// SPDX-License-Identifier: Apache-2.0\n"));
    }
  }

  @Test
  void readmeIsShort() throws IOException {
    assertThat(Files.readAllLines(ROOT.resolve("README.md")))
        .hasSizeLessThanOrEqualTo(MAX_README_LINES);
  }

  @Test
  void eachUserHasAnExample() throws IOException {
    assertThat(JAVA.matcher(Files.readString(ROOT.resolve("README.md"))).results())
        .hasSizeGreaterThanOrEqualTo(3);
  }

  /// A name in backquotes is a type, or a type and one of its methods.
  @Test
  void architectureNamesWhatTheCodeHas() throws IOException {
    Map<String, String> sources = sources();
    List<String> unknown =
        NAME.matcher(Files.readString(ROOT.resolve("docs").resolve("ARCHITECTURE.md")))
            .results()
            .filter(name -> !has(sources, name.group(1), name.group(2)))
            .map(MatchResult::group)
            .toList();
    assertThat(unknown).isEmpty();
  }

  private static boolean has(Map<String, String> sources, String type, @Nullable String member) {
    String source = sources.get(type);
    return source != null && (member == null || source.contains(" " + member + "("));
  }

  /// Returns the text of each source file, by the name of its type.
  private static Map<String, String> sources() throws IOException {
    Map<String, String> sources = new HashMap<>();
    try (Stream<Path> files = Files.walk(ROOT)) {
      for (Path file : files.filter(DocumentationTest::isSource).toList()) {
        String name = file.getFileName().toString();
        sources.put(name.substring(0, name.length() - ".java".length()), Files.readString(file));
      }
    }
    return sources;
  }

  private static boolean isSource(Path file) {
    return file.toString().endsWith(".java") && file.toString().contains("/src/");
  }

  /// The build of this project also builds that POM, as a project of its own.
  @Test
  void gettingStartedShowsThePomThatOurBuildBuilds() throws IOException {
    assertThat(Files.readString(ROOT.resolve("docs").resolve("getting-started.md")))
        .contains(
            "```xml\n" + Files.readString(SAMPLES.resolve(Path.of("consumer", "pom.xml"))) + "```");
  }

  private static String programs() throws IOException {
    try (Stream<Path> files =
        Stream.of(
                SAMPLES.resolve(Path.of("src", "main", "java")),
                SAMPLES.resolve("spark").resolve("src"),
                SAMPLES.resolve("consumer").resolve("src"),
                ROOT.resolve("loader-djl/src/test/java/dev/gantry/djl/ParameterRulesTest.java"),
                ROOT.resolve("langchain4j/src/test/java/dev/gantry/langchain4j/SearchTest.java"))
            .flatMap(DocumentationTest::walk)) {
      return files.map(DocumentationTest::read).collect(Collectors.joining("\n"));
    }
  }

  private static Stream<Path> walk(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(file -> file.toString().endsWith(".java")).sorted().toList().stream();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String read(Path file) {
    try {
      return withoutIndentation(Files.readString(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String withoutIndentation(String text) {
    return text.replaceAll("(?m)^ +", "");
  }
}
