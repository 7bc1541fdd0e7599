// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.benchmarks.result.Spread;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.testing.NoLeaks;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;

/// Runs `bench` on files of a megabyte. No figure is compared with an expected one, because
/// figures depend on the machine.
class BenchCommandTest {
  private static final String FROM =
      "--from cannot be combined with --file, --folder, --quick, --size-mib, --repeats, --seconds"
          + " or --device (was x)";

  @TempDir private Path temporary;

  @AfterEach
  void nothingIsLeft() throws IOException {
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
    assertThat(entries(temporary)).noneMatch(name -> name.startsWith("gantry-bench-"));
  }

  private static List<String> entries(Path folder) throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(entry -> entry.getFileName().toString()).sorted().toList();
    }
  }

  private CommandLineRun bench(Object... more) {
    return CommandLineRun.of(
        Stream.concat(
                Stream.of("bench", "--quick", "--seconds", 600, "--repeats", 2, "--device", "host"),
                Stream.concat(Stream.of("--folder", temporary), Arrays.stream(more)))
            .toArray());
  }

  @Test
  void pageAndDataAndTableSayTheSame() throws Exception {
    Path out = temporary.resolve("new").resolve("out");
    CommandLineRun run = bench("--size-mib", "1,2", "--out", out);

    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    assertThat(entries(temporary)).containsExactly("new");
    assertThat(entries(out)).containsExactly("bench.html", "bench.json");

    String data = Files.readString(out.resolve("bench.json"));
    Map<?, ?> json = (Map<?, ?>) JsonTree.parse(data);
    checkRun(json);
    List<?> points = (List<?>) json.get("points");
    points.forEach(point -> checkPoint((Map<?, ?>) point));
    Map<String, List<Map<?, ?>>> groups =
        points.stream()
            .<Map<?, ?>>map(point -> (Map<?, ?>) point)
            .collect(Collectors.groupingBy(point -> (String) point.get("group")));
    assertThat(groups).containsKeys("CEILING", "LOAD", "FIRST_LOAD", "GRID");
    assertThat(names(groups.get("CEILING")))
        .anyMatch(name -> name.startsWith("memory copy"))
        .anyMatch(name -> name.startsWith("page cache"));
    assertThat(names(groups.get("LOAD")))
        .contains("Gantry", "DJL NDList.decode", "FileChannel, 1 thread");
    assertThat(groups.get("LOAD").stream().map(point -> (String) point.get("what")).distinct())
        .containsExactly(
            "1 MiB in 1 tensor", "1 MiB in 20 tensors", "2 MiB in 1 tensor", "2 MiB in 41 tensors");
    checkCold(groups.get("LOAD"), (List<?>) json.get("absences"));
    checkPage(Files.readString(out.resolve("bench.html")), points);
    for (Object point : points) {
      double median = ((Number) ((Map<?, ?>) point).get("median")).doubleValue();
      assertThat(run.out()).contains(Spread.rate(median));
    }

    CommandLineRun again =
        CommandLineRun.of("bench", "--from", out.resolve("bench.json"), "--json");
    assertThat(again.exitCode()).as(again.err()).isZero();
    assertThat(again.json()).isEqualTo(json);
  }

  private static Document parse(String xml) throws Exception {
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(xml)));
  }

  private static List<Element> elements(Document document, String name) {
    NodeList found = document.getElementsByTagName(name);
    return IntStream.range(0, found.getLength()).mapToObj(i -> (Element) found.item(i)).toList();
  }

  private static List<String> names(List<Map<?, ?>> points) {
    return points.stream().map(point -> (String) point.get("name")).toList();
  }

  private static void checkRun(Map<?, ?> json) {
    assertThat(json.get("schema")).isEqualTo(1);
    Map<?, ?> run = (Map<?, ?>) json.get("run");
    assertThat(run.get("quick")).isEqualTo(true);
    assertThat(run.get("repeats")).isEqualTo(2);
    assertThat((String) run.get("command")).startsWith("gantry bench --quick");
    assertThat(run.get("device")).isEqualTo("host");
    Map<?, ?> machine = (Map<?, ?>) json.get("machine");
    assertThat(machine.get("cores")).isEqualTo(Runtime.getRuntime().availableProcessors());
    assertThat(((Number) machine.get("memoryBytes")).longValue()).isGreaterThan(1 << 20);
    assertThat((String) machine.get("kernel")).startsWith(System.getProperty("os.name"));
  }

  private static void checkPoint(Map<?, ?> point) {
    List<Double> repeats =
        ((List<?>) point.get("repeats"))
            .stream().map(rate -> ((Number) rate).doubleValue()).sorted().toList();
    assertThat(repeats).isNotEmpty().allMatch(rate -> rate > 0).hasSizeLessThanOrEqualTo(2);
    assertThat(point.get("unit")).isEqualTo("GB/s");
    assertThat(((Number) point.get("least")).doubleValue()).isEqualTo(repeats.getFirst());
    assertThat(((Number) point.get("most")).doubleValue()).isEqualTo(repeats.getLast());
    assertThat(point.get("heat")).isIn("hot", "cold", "none");
    assertThat(point.get("ceilingRatio") != null).isEqualTo(point.get("group").equals("LOAD"));
    assertThat(((Map<?, ?>) point.get("parameters")).keySet().stream().map(Object::toString))
        .isSubsetOf("requestBytes", "threads");
  }

  /// Requires that half of the loads are cold, or that the result says why none is.
  private static void checkCold(List<Map<?, ?>> loads, List<?> absences) {
    long cold = loads.stream().filter(point -> "cold".equals(point.get("heat"))).count();
    if (cold == 0) {
      assertThat(absences)
          .anyMatch(absence -> ((String) ((Map<?, ?>) absence).get("what")).startsWith("cold, "));
    } else {
      assertThat(cold).isEqualTo(loads.size() / 2);
    }
  }

  private static void checkPage(String html, List<?> points) throws Exception {
    Document page = parse(html);
    List<Element> rows =
        elements(page, "tr").stream().filter(row -> row.hasAttribute("data-point")).toList();
    assertThat(rows).hasSameSizeAs(points);
    for (int i = 0; i < rows.size(); i++) {
      Map<?, ?> point = (Map<?, ?>) points.get(i);
      assertThat(rows.get(i).getElementsByTagName("td").getLength()).isEqualTo(10);
      assertThat(rows.get(i).getElementsByTagName("td").item(4).getTextContent())
          .isEqualTo(Spread.rate(((Number) point.get("median")).doubleValue()));
    }
    // The page shows the threads' reads, which the flight recorder has recorded.
    assertThat(html).contains("What each thread did", "thread ");
    assertThat(elements(page, "canvas")).hasSizeGreaterThanOrEqualTo(7);
  }

  @Test
  void partsThatAreNotBegunInTimeAreLeftOutAndNamed() throws IOException {
    CommandLineRun run =
        CommandLineRun.of(
            "bench",
            "--seconds",
            1,
            "--size-mib",
            "1,2,4,8,16,32,64",
            "--device",
            "host",
            "--json",
            "--folder",
            temporary);

    assertThat(run.exitCode()).as(run.err()).isZero();
    // A faster machine begins more of the parts, but not all of them.
    assertThat(absences(run.json()))
        .anyMatch(absence -> absence.contains(": the budget of 1 s was used up"));
  }

  private static List<String> absences(Object json) {
    return ((List<?>) ((Map<?, ?>) json).get("absences"))
        .stream()
            .map(absence -> (Map<?, ?>) absence)
            .map(absence -> absence.get("what") + ": " + absence.get("reason"))
            .toList();
  }

  @Test
  void whatWasMeasuredIsWrittenWhenTheCommandIsEnded() throws Exception {
    Path out = temporary.resolve("out");
    List<String> arguments =
        List.of("bench", "--device", "host", "--size-mib", "1", "--out", out.toString());
    Process process =
        ChildCommand.start(
            Stream.concat(arguments.stream(), Stream.of("--folder", temporary.toString())));
    try (BufferedReader err = process.errorReader()) {
      assertThat(err.lines().anyMatch(line -> line.contains("part 4 of"))).isTrue();
      // ProcessHandle.destroy leaves the process's output open; Process.destroy would close it.
      process.toHandle().destroy();
      String table = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

      assertThat(process.waitFor()).as(table).isEqualTo(143);
      assertThat(table).contains("memory copy", "GB/s", "ended by a signal");
    } finally {
      process.destroyForcibly();
    }
    Object json = JsonTree.parse(Files.readString(out.resolve("bench.json")));
    assertThat((List<?>) ((Map<?, ?>) json).get("points")).isNotEmpty();
    assertThat(absences(json))
        .contains("loads, 1 MiB in 20 tensors, hot: the command was ended by a signal");
    assertThat(out.resolve("bench.html")).exists();
  }

  @Test
  void aFileOfTheUsersIsReadAndNeitherChangedNorRemoved() throws IOException {
    Path file = temporary.resolve("mine.safetensors");
    var _ = RandomCheckpoint.make(file, 1 << 20, 3, "BF16");
    byte[] before = Files.readAllBytes(file);
    CommandLineRun run = bench("--file", file, "--json");

    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(Files.readAllBytes(file)).isEqualTo(before);
    assertThat(entries(temporary)).containsExactly("mine.safetensors");
    assertThat(run.out()).contains("mine.safetensors, 1 MiB in 3 tensors");
    // DJL's own reader would end the JVM on BF16.
    assertThat(((List<?>) ((Map<?, ?>) run.json()).get("absences")))
        .anyMatch(absence ->
            ((Map<?, ?>) absence).get("reason").equals("it does not know all of the types"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--size-mib 0|--size-mib must be 1 to 1048576 (was 0)",
        "--repeats 0|--repeats must be 1 to 1000 (was 0)",
        "--seconds -1|--seconds must be 1 to 86400 (was -1)",
        "--folder /dev/null|--folder must be a folder (was /dev/null)",
        "--out /dev/null|--out must be a folder that exists or can be made (was /dev/null)",
        "--out /proc/x|--out must be a folder that exists or can be made (was /proc/x)",
        "--file x --size-mib 3|--size-mib cannot be combined with --file (was [3])",
        "--from x --quick|" + FROM,
        "--from x --repeats 3|" + FROM,
        "--from x --seconds 5|" + FROM,
        "--from x --folder /tmp|" + FROM,
      })
  void wrongOptionsAreOneLine(String what) {
    String[] parts = what.split("\\|", 2);
    CommandLineRun run = CommandLineRun.of((Object[]) ("bench " + parts[0]).split(" ", -1));

    assertThat(run.exitCode()).isEqualTo(64);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).isEqualTo("gantry: " + parts[1] + System.lineSeparator());
  }

  @Test
  void aMissingFileIsExitCode66() {
    CommandLineRun run = bench("--file", temporary.resolve("none.safetensors"));
    assertThat(run.exitCode()).isEqualTo(66);
    assertThat(run.err().lines()).hasSize(1);
  }

  @Test
  void noRoomIsExitCode74() {
    CommandLineRun run = bench("--size-mib", 1 << 20);
    assertThat(run.exitCode()).isEqualTo(74);
    assertThat(run.err()).contains("has room for", "the bench needs").hasLineCount(1);
  }

  @Test
  void dataThatIsNoBenchIsExitCode65() throws IOException {
    for (byte[] bytes : List.of(new byte[] {'{', '}'}, new byte[] {'{', -1})) {
      Path data = Files.write(temporary.resolve("data.json"), bytes);
      CommandLineRun run = CommandLineRun.of("bench", "--from", data);
      assertThat(run.exitCode()).isEqualTo(65);
      assertThat(run.err())
          .startsWith(
              "gantry: " + data + ": offset 0: invalid-bench: --from must be a bench.json: ")
          .hasLineCount(1);
    }
  }

  @Test
  void missingDataAreExitCode66() {
    Path data = temporary.resolve("none.json");
    CommandLineRun run = CommandLineRun.of("bench", "--from", data);
    assertThat(run.exitCode()).isEqualTo(66);
    assertThat(run.err()).startsWith("gantry: read failed: " + data).hasLineCount(1);
  }
}
