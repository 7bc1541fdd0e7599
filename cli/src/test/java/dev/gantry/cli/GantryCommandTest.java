// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.samples.demo.DigitAnswers;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.NativeStubs;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Tests the commands' exit codes, and what they print on standard output and standard error.
class GantryCommandTest {
  @TempDir private Path temporary;

  private Path model;

  @BeforeEach
  void extract() throws IOException {
    model = DigitAnswers.extract(temporary);
  }

  private static void assertOneLine(CommandLineRun run, int exitCode) {
    assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
    assertThat(run.out()).isEmpty();
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.err()).startsWith("gantry: ");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "fly",
        "digest",
        "digest --device tpu FILE",
        "load --repeat 0 FILE",
        "load --transport wormhole FILE",
        "load --request-mib -1 FILE",
        "load --request-mib 0 FILE",
        "load --threads 0 FILE",
        "load --threads 65 FILE",
        "load --threads many FILE",
        "inspect --jsn FILE",
        "convert FILE",
        "convert --shard-bytes 0 FILE /tmp/out",
        "index",
        "index --check FILE",
        "demo --bytes 5",
        "demo --dir /no/such/folder"
      })
  void wrongUseIsExitCode64(String line) {
    Object[] arguments =
        Stream.of(line.split(" "))
            .filter(word -> !word.isEmpty())
            .map(word -> word.equals("FILE") ? model.toString() : word)
            .toArray();
    assertOneLine(CommandLineRun.of(arguments), 64);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "load --repeat x FILE | '--repeat': must be a whole number, at most 2147483647 (was x)",
        "load --repeat 9999999999 FILE | must be a whole number, at most 2147483647 (was"
            + " 9999999999)",
        "convert --shard-bytes 1MB FILE /tmp/out | at most 9223372036854775807 (was 1MB)",
        "convert FILE | convert needs IN and OUT (was only",
        "convert --stretch FILE /tmp/out | --stretch needs --size",
        "convert FILE  /tmp/out | an argument of convert is empty",
        "fly | there is no command 'fly'; ./gantry --help lists the commands",
        "inspect FILE FILE | inspect takes no more arguments (was '",
        "inspect --fly FILE | Unknown option: '--fly'",
        "inspect --fly FILE ANOTHER | Unknown option: '--fly'",
        "checkpoints | ; ./gantry checkpoints --help lists the commands",
        "checkpoints show FILE | ; ./gantry checkpoints --help lists the commands"
      })
  void wrongUseIsNamed(String line, String words) {
    Object[] arguments = line.replace("FILE", model.toString()).split(" ");
    CommandLineRun run = CommandLineRun.of(arguments);
    assertOneLine(run, 64);
    assertThat(run.err()).contains(words);
  }

  @ParameterizedTest
  @ValueSource(strings = {"digest", "inspect", "load", "doctor", "index", "index --check"})
  void aMissingFileIsExitCode66(String command) {
    Path missing = temporary.resolve("missing.safetensors");
    CommandLineRun run =
        CommandLineRun.of(Stream.of((command + " " + missing).split(" ")).toArray());
    assertOneLine(run, 66);
    assertThat(run.err()).contains(missing.toString());
  }

  @ParameterizedTest
  @ValueSource(strings = {"digest", "load"})
  void aMissingDeviceIsExitCode69(String command) {
    assertOneLine(CommandLineRun.of(command, "--device", "cuda:4711", model), 69);
  }

  @Test
  void aPathThatCannotServeIsExitCode69() {
    CommandLineRun run = CommandLineRun.of("load", "--device", "host", "--transport", "gds", model);
    assertOneLine(run, 69);
    assertThat(run.err()).contains("gds");
  }

  @ParameterizedTest
  @ValueSource(strings = {"digest", "inspect", "load", "doctor", "index"})
  void aFileThatCannotBeOpenedIsExitCode74(String command) {
    // A name of 300 characters is too long for the file system: ENAMETOOLONG.
    Path file = temporary.resolve("x".repeat(300));
    assertOneLine(CommandLineRun.of(command, file), 74);
  }

  /// Fails as a write to a full disk does.
  private static final class FullWriter extends Writer {
    @Override
    public void write(char[] text, int offset, int length) throws IOException {
      throw new IOException("No space left on device");
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "inspect FILE",
        "inspect --json FILE",
        "digest FILE",
        "digest --json FILE",
        "load --device host FILE",
        "load --device host --json FILE",
        "convert FILE OUT",
        "index --json FILE",
        "doctor",
        "doctor --json",
        "--help"
      })
  void anAnswerThatIsCutOffIsExitCode74(String line) {
    StringWriter err = new StringWriter();
    int exitCode =
        GantryCommand.run(
            new PrintWriter(new FullWriter()),
            new PrintWriter(err),
            line.replace("FILE", model.toString())
                .replace("OUT", temporary.resolve("out").toString())
                .split(" ", -1));
    assertThat(exitCode).as(err.toString()).isEqualTo(74);
    assertThat(err.toString()).startsWith("gantry: standard output is incomplete").hasLineCount(1);
  }

  @Test
  void aFullDeviceIsNamed() throws Exception {
    Path full = Path.of("/dev/full");
    assumeTrue(Files.exists(full));
    Process process =
        ChildCommand.of(Stream.of("inspect", "--json", model.toString()))
            .redirectOutput(full.toFile())
            .start();
    String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(err).isEqualTo(74);
    assertThat(err).isEqualTo("gantry: standard output is incomplete: No space left on device\n");
  }

  @Test
  void aTemporaryFolderThatTakesNoFileIsNamed() throws Exception {
    Path records =
        TestSamples.writeRecords(
            temporary.resolve("records"), Compression.NONE, List.of(new byte[] {1}));
    Path none = Files.createFile(temporary.resolve("none"));
    Process process =
        ChildJvm.command(
                List.of("-Djava.io.tmpdir=" + none), GantryCommand.class, "digest", records)
            .start();
    String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(err).isEqualTo(74);
    assertThat(err)
        .contains("gantry: the temporary file of digests in " + none + " cannot be made: ")
        .contains("Not a directory");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "answer s3://bucket/model --input x|s3://bucket/model",
        "answer FILE --input http://host/x|http://host/x",
        "doctor s3://bucket/model|s3://bucket/model",
        "inspect s3:/bucket/model|s3:/bucket/model",
        "load gantry-resident:/x|gantry-resident:/x",
        "doctor s3:/bucket/model|s3:/bucket/model"
      })
  void whatIsNoPathIsNamed(String words) {
    String[] parts = words.split("\\|", 2);
    String[] arguments = parts[0].replace("FILE", model.toString()).split(" ", -1);
    CommandLineRun run = CommandLineRun.of((Object[]) arguments);
    assertOneLine(run, 64);
    assertThat(run.err()).contains("(was " + parts[1] + ")");
  }

  @Test
  void loadAsJsonHasEachRunAndTheMemory() {
    CommandLineRun run =
        CommandLineRun.of("load", "--device", "host", "--repeat", "2", "--json", model);
    Map<?, ?> document = (Map<?, ?>) run.json();
    assertThat(document.get("bytes")).isEqualTo(59_248);
    assertThat(document.get("devices")).isEqualTo(List.of("host"));
    List<?> runs = (List<?>) document.get("runs");
    assertThat(runs).hasSize(2);
    for (Object one : runs) {
      Map<?, ?> load = (Map<?, ?>) one;
      assertThat(((Number) load.get("seconds")).doubleValue()).isPositive();
      assertThat(((Number) load.get("gbPerSecond")).doubleValue()).isPositive();
      assertThat((Integer) ((Map<?, ?>) load.get("transport")).get("host")).isPositive();
    }
    Map<?, ?> most = (Map<?, ?>) document.get("mostMemory");
    assertThat((Integer) most.get("hostBytes")).isGreaterThanOrEqualTo(59_248);
    assertThat(most.get("deviceBytes")).isEqualTo(0);
    assertThat(document.get("verified")).isEqualTo(false);
  }

  @Test
  void verboseSaysWhereAnErrorCameFrom() {
    CommandLineRun run = CommandLineRun.of("--verbose", "inspect", temporary.resolve("missing"));
    assertThat(run.exitCode()).isEqualTo(66);
    assertThat(run.err().lines()).hasSizeGreaterThan(2);
    assertThat(run.err()).contains("TransferException").contains("\tat dev.gantry.");
  }

  @Test
  void digestCountsTheBytesOfEachTransport() {
    CommandLineRun run = CommandLineRun.of("digest", "--json", "--device", "host", model);
    Map<?, ?> document = (Map<?, ?>) run.json();
    assertThat(document.get("bytes")).isEqualTo(59_248);
    Map<?, ?> transports = (Map<?, ?>) document.get("transport");
    assertThat(transports.keySet().stream().map(Object::toString))
        .containsExactly("gds", "compat", "staged", "mapped", "host");
    assertThat((Integer) transports.get("host")).isGreaterThanOrEqualTo(59_248);
    assertThat(List.of(transports.get("gds"), transports.get("compat"), transports.get("staged")))
        .containsOnly((Object) 0);
  }

  @Test
  void digestForPeopleIsALineATensor() {
    CommandLineRun run = CommandLineRun.of("digest", model);
    assertThat(run.exitCode()).isZero();
    assertThat(run.out().lines()).hasSize(7).allMatch(line -> line.matches("[0-9a-f]{64}  \\S+"));
  }

  @Test
  void inspectForPeopleNamesShardsAndTensors() {
    CommandLineRun run = CommandLineRun.of("inspect", model);
    assertThat(run.exitCode()).isZero();
    assertThat(run.out())
        .startsWith("safetensors, 3 file(s), 7 tensors, 59,248 bytes")
        .contains("fc1.weight", "F32", "[96, 64]", "model-00001-of-00003.safetensors");
  }

  @Test
  void loadPrintsARowARun() {
    CommandLineRun run = CommandLineRun.of("load", "--device", "host", "--repeat", "3", model);
    assertThat(run.exitCode()).isZero();
    assertThat(run.err()).isEmpty();
    List<String> lines = run.out().lines().toList();
    assertThat(lines).hasSize(4);
    assertThat(lines.getFirst())
        .matches("run +device +transport +readers +bypassed page cache +seconds +GB/s +slabs");
    for (int number = 1; number <= 3; number++) {
      assertThat(lines.get(number))
          .matches(
              number
                  + " +host +host +[0-9]+ +[0-9]+% +[0-9]+\\.[0-9]{3} +[0-9]+\\.[0-9]{2} +[0-9]+"
                  + " MiB");
    }
  }

  @Test
  void doctorSaysWhichPathFilesTake() throws IOException {
    CommandLineRun run = CommandLineRun.of("doctor", "--json", model);
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    Map<?, ?> document = (Map<?, ?>) run.json();
    assertThat(document.keySet().stream().map(Object::toString))
        .containsExactly(
            "cuda",
            "cufile",
            "libtorch",
            "jpeg",
            "nvjpeg",
            "host",
            "device",
            "files",
            "disks",
            "remedies");
    assertThat(((Map<?, ?>) document.get("cuda")).keySet().stream().map(Object::toString))
        .containsExactly("version", "absence", "devices", "peers");
    assertThat(((Map<?, ?>) document.get("cufile")).keySet().stream().map(Object::toString))
        .containsExactly("library", "absence", "directAbsence");
    assertThat(((Map<?, ?>) document.get("host")).keySet().stream().map(Object::toString))
        .containsExactly(
            "iommu", "acs", "nvidiaFs", "nvidiaFsVersion", "udev", "kernel", "staticBar1");
    assertThat((List<?>) document.get("remedies"))
        .allSatisfy(remedy ->
            assertThat(((Map<?, ?>) remedy).keySet().stream().map(Object::toString))
                .containsExactly("remedy", "about", "reason", "do", "see"));
    List<?> files = (List<?>) document.get("files");
    assertThat(files).hasSize(5);
    for (Object element : files) {
      Map<?, ?> file = (Map<?, ?>) element;
      assertThat(file.keySet().stream().map(Object::toString))
          .containsExactly(
              "file", "transport", "reason", "directAbsence", "bytes", "residentBytes");
      Path path = Path.of((String) file.get("file"));
      assertThat(path).isRegularFile();
      assertThat(((Number) file.get("bytes")).longValue()).isEqualTo(Files.size(path));
    }
  }

  @Test
  void doctorHasLibcufileWriteThePcieTree(@TempDir Path trees) {
    Path tree = trees.resolve("topology.json");
    CommandLineRun none = CommandLineRun.of("doctor", "--topology", tree);
    assertThat(none.exitCode()).isNotZero();
    assertThat(none.err()).contains("libcufile.so.0");
    assertThat(tree).doesNotExist();
    System.setProperty(CuFile.PROPERTY, NativeStubs.newCuFile().toString());
    try {
      CommandLineRun run = CommandLineRun.of("doctor", "--topology", tree);
      assertThat(run.exitCode()).as(run.err()).isZero();
      assertThat(run.out()).contains("topology  written to " + tree);
      assertThat(tree).content().startsWith("// Topology file");
    } finally {
      System.clearProperty(CuFile.PROPERTY);
    }
  }

  @Test
  void doctorForPeopleSaysWhatIsMissing() {
    CommandLineRun run = CommandLineRun.of("doctor");
    assertThat(run.exitCode()).isZero();
    assertThat(run.out().lines())
        .anyMatch(line -> line.startsWith("CUDA "))
        .anyMatch(line -> line.startsWith("libcufile "))
        .anyMatch(line -> line.startsWith("JPEG      decoded by "))
        .anyMatch(line -> line.startsWith("libnvjpeg "))
        .anyMatch(line -> line.startsWith("host "))
        .anyMatch(line -> line.startsWith("loads go to "));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "doctor", "inspect", "digest", "load", "answer", "map", "convert", "index", "demo"
      })
  void everyCommandHasHelp(String command) {
    CommandLineRun run = CommandLineRun.of(command, "--help");
    assertThat(run.exitCode()).isZero();
    assertThat(run.err()).isEmpty();
    assertThat(run.out()).startsWith("Usage: gantry " + command).contains("65", "malformed input");
  }

  @Test
  void aHeapThatIsTooSmallIsOneLine() throws IOException {
    String tensors =
        IntStream.range(0, 100_000)
            .mapToObj(
                i -> "\"layer." + i + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}")
            .collect(Collectors.joining(",", "{", "}"));
    byte[] header = tensors.getBytes(StandardCharsets.UTF_8);
    Path file = temporary.resolve("many.safetensors");
    try (OutputStream out = Files.newOutputStream(file)) {
      out.write(
          ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(header.length).array());
      out.write(header);
    }
    ChildJvm.Result child =
        ChildJvm.run("16m", Map.of(), GantryCommand.class, "inspect", file.toString());
    String printed = child.out() + child.err();
    assertThat(child.exit()).as(printed).isEqualTo(70);
    assertThat(printed.lines().filter(line -> line.startsWith("gantry: "))).hasSize(1);
    assertThat(printed)
        .contains("gantry: the Java heap of ", " MiB is too small for this")
        .doesNotContain("\tat ");
  }
}
