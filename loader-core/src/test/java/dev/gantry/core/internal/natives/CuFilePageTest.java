// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// `docs/cufile.md` names every function that Gantry binds, and names nothing that does not exist.
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

  /// Returns the texts of the files whose names match.
  private static List<String> sources(Path folder, String names) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files
          .filter(file -> file.getFileName().toString().matches(names))
          .map(CuFilePageTest::read)
          .toList();
    }
  }

  /// Returns the texts of the bindings with a name, both the main code's and those that only tests
  /// call.
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

  /// A name of `cufile.h`.
  ///
  /// @param since the first version of libcufile whose header has the name
  /// @param number the value of the name; `-` for a function
  private record Name(String since, String kind, String name, String number) {}

  private static List<Name> names() {
    return read(Path.of("src", "test", "resources", "cufile-names.txt"))
        .lines()
        .filter(line -> !line.startsWith("#"))
        .map(line -> line.split(" "))
        .map(parts -> new Name(parts[0], parts[1], parts[2], parts[3]))
        .toList();
  }

  @Test
  void everyNameOfTheHeadersHasARowWithItsNumber() {
    assertThat(names())
        .hasSizeGreaterThan(180)
        .allSatisfy(name -> {
          String cell = "`" + name.name() + "`";
          List<List<String>> found =
              rows.stream()
                  .filter(row -> row.stream().limit(2).anyMatch(text -> text.contains(cell)))
                  .toList();
          assertThat(found).as(name.name()).isNotEmpty();
          if (!name.since().equals("1.15")) {
            assertThat(found.toString()).as(name.name()).contains(name.since());
          }
          if (!name.kind().equals("function")) {
            assertThat(found)
                .as("%s with %s", name.name(), name.number())
                .anyMatch(row -> row.stream().anyMatch(text -> isNumber(text, name)));
          }
        });
  }

  private static boolean isNumber(String text, Name name) {
    int number = Integer.parseInt(name.number());
    return text.equals(name.number())
        || text.equals("0x%02x".formatted(number))
        || text.equals("bit " + number)
        || (Integer.bitCount(number) == 1
            && text.equals("bit " + Integer.numberOfTrailingZeros(number)));
  }

  @Test
  void theNumbersOfBindingsAreThoseOfTheHeaders() {
    Map<String, String> numbers =
        names().stream().collect(Collectors.toMap(Name::name, Name::number, (_, newer) -> newer));
    for (CuFileParameters.Size size : CuFileParameters.Size.values()) {
      assertThat(numbers).containsEntry("CUFILE_PARAM_" + size, "" + size.value());
    }
    for (CuFileParameters.Flag flag : CuFileParameters.Flag.values()) {
      assertThat(numbers).containsEntry("CUFILE_PARAM_" + flag, "" + flag.value());
    }
    for (CuFileParameters.Text text : CuFileParameters.Text.values()) {
      assertThat(numbers).containsEntry("CUFILE_PARAM_" + text, "" + text.value());
    }
    for (CuFileCode code : CuFileCode.values()) {
      assertThat(numbers).containsEntry(code.name(), "" + code.code());
    }
    assertThat(numbers)
        .containsEntry("CU_FILE_P2P_FLAG_PCI_P2PDMA", "" + CuFile.PCI_PEER_TO_PEER)
        .containsEntry("CU_FILE_P2P_FLAG_C2C", "" + CuFile.CHIP_TO_CHIP);
  }

  /// Returns the header of CUDA on this machine, or the header that the system property
  /// `gantry.cufile.header` names.
  private static Path header() {
    Path header =
        Path.of(System.getProperty("gantry.cufile.header", "/usr/local/cuda/include/cufile.h"));
    assumeTrue(Files.exists(header), "no cufile.h");
    return header;
  }

  @Test
  void theHeaderAtHandHasNoNameThatTheListLacks() {
    String code =
        read(header()).replaceAll("(?s)/\\*.*?\\*/", "").replaceAll("//.*|(?m)^#(?!define).*", "");
    Set<String> known = names().stream().map(Name::name).collect(Collectors.toSet());
    // These are helper macros of the header and its inline functions.
    known.addAll(
        Set.of(
            "CU_FILE_SUCCESS",
            "CU_FILE_CUDA_ERR",
            "CUFILE_ERRSTR",
            "CUFILE_OP",
            "CUFILE_LOADING_ERROR"));
    Set<String> named = new TreeSet<>();
    Pattern.compile("\\b(CU_FILE_\\w+|CUFILE_[A-Z]\\w*|cuFile[A-Z]\\w+)\\b")
        .matcher(code)
        .results()
        .forEach(found -> named.add(found.group()));
    assertThat(named).hasSizeGreaterThan(100).isSubsetOf(known);
  }

  /// The C compiler prints the sizes of the header's structs. The header needs only two types of
  /// CUDA, which the test declares.
  @Test
  void theLayoutsAreThoseOfTheHeaderAtHand(@TempDir Path folder)
      throws IOException, InterruptedException {
    Path header = header();
    Files.writeString(folder.resolve("cuda.h"), "typedef int CUresult; typedef void *CUstream;");
    Path source = folder.resolve("sizes.c");
    Files.writeString(
        source,
        """
        #include <stdint.h>
        #include <stdio.h>
        #include <time.h>
        #include "%s"
        int main(void) {
          printf("%%zu %%zu %%zu", sizeof(CUfileStatsLevel1_t) / 8, sizeof(CUfileStatsLevel2_t) / 8,
                 sizeof(CUfileStatsLevel3_t) / 8);
        }
        """
            .formatted(header));
    Path program = folder.resolve("sizes");
    run("cc", "-I" + folder, "-o", program.toString(), source.toString());
    String sizes = run(program.toString());
    assertThat(Stream.of(CuFileStatistics.Layout.values()))
        .anySatisfy(layout ->
            assertThat(layout.words(1) + " " + layout.words(2) + " " + layout.words(3))
                .isEqualTo(sizes));
  }

  private static String run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(said).isZero();
    return said;
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
