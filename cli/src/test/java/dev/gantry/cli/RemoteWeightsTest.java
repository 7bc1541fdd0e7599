// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.samples.demo.DigitAnswers;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Runs commands on weights behind a URL.
class RemoteWeightsTest {
  private static final Path NUMPY =
      Path.of("..", "formats", "src", "test", "resources", "corpus", "numpy");

  @TempDir private Path temporary;
  private final RangeServer server = new RangeServer();
  private Path model;
  private Location index;

  @BeforeEach
  void serveTheModel() throws IOException {
    model = DigitAnswers.extract(temporary);
    try (Stream<Path> files = Files.list(model)) {
      for (Path file : files.toList()) {
        server.put(file.getFileName().toString(), Files.readAllBytes(file));
      }
    }
    index = server.missing("model.safetensors.index.json");
  }

  @AfterEach
  void close() {
    server.close();
  }

  private static Object tensorsOf(Object file) {
    return TestSamples.json(TestSamples.run("digest", "--json", "--device", "host", file))
        .get("tensors");
  }

  @Test
  void digestIsThatOfTheLocalFiles() {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("digest", "--json", "--device", "host", index));
    assertThat(document.get("tensors")).isEqualTo(tensorsOf(model));
    assertThat((Integer) ((Map<?, ?>) document.get("transport")).get("host")).isPositive();
  }

  @Test
  void aCheckpointIsVerifiedAndComparedByItsUrl(@TempDir Path run) throws IOException {
    CheckpointsCommandTest.save(run, 1);
    Path local = run.resolve("gantry-step-1");
    try (Stream<Path> files = Files.list(local)) {
      for (Path file : files.toList()) {
        server.put("gantry-step-1/" + file.getFileName(), Files.readAllBytes(file));
      }
    }
    Location url = server.missing("gantry-step-1");
    assertThat(TestSamples.run("checkpoints", "verify", url).out()).contains(": whole, 4 files");
    assertThat(TestSamples.run("checkpoints", "diff", url, local).out())
        .startsWith("0 tensors differ");
    // An HTTP server of files cannot list a folder.
    assertThat(TestSamples.fail(64, "checkpoints", "list", server.missing("run")).err())
        .contains("http");
  }

  @Test
  void inspectNamesTheFilesByTheirUrls() {
    Map<?, ?> document = TestSamples.json(TestSamples.run("inspect", "--json", index));
    assertThat(document.get("format")).isEqualTo("safetensors");
    Map<?, ?> tensor = (Map<?, ?>) ((Map<?, ?>) document.get("tensors")).get("fc1.bias");
    assertThat(tensor.get("file"))
        .isEqualTo(index.sibling("model-00001-of-00003.safetensors").toString());
  }

  /// Serves weights of several cache blocks. When the load begins, the cache has the header's
  /// block and none of the others.
  private Location weightsOfSeveralBlocks() {
    int bytes = 3 << 20;
    byte[] header =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}"
            .formatted(bytes, bytes)
            .getBytes(StandardCharsets.UTF_8);
    return server.put(
        "large.safetensors",
        ByteBuffer.allocate(Long.BYTES + header.length + bytes)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putLong(header.length)
            .put(header)
            .array());
  }

  @Test
  void loadAndDoctorNameTheCache() {
    Path folder = temporary.resolve("cache");
    List<String> lines =
        TestSamples.run(
                "load",
                "--device",
                "host",
                "--repeat",
                2,
                "--cache-folder",
                folder,
                "--cache-bytes",
                "10MB",
                weightsOfSeveralBlocks())
            .out()
            .lines()
            .toList();
    assertThat(lines.get(1)).doesNotContain("cache").endsWith(" 3 MiB");
    // The first load's memory is free again.
    assertThat(lines.get(2)).contains("host, 1 file from the cache").endsWith(" 3 MiB");
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("doctor", "--json", "--cache-folder", folder));
    Map<?, ?> cache = (Map<?, ?>) document.get("cache");
    assertThat(cache.get("folder")).isEqualTo(folder.toString());
    assertThat(((Number) cache.get("files")).intValue()).isOne();
    assertThat(TestSamples.run("doctor", "--cache-folder", folder).out())
        .contains("cache     " + folder + ": ", " files, 0.0 of ");
    assertThat(TestSamples.run("doctor").out()).contains("cache     none");
    assertThat(System.getProperty("gantry.cache")).isNull();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void cacheBytesThatAreNoNumberAreRefusedWithAndWithoutAFolder(boolean withFolder) {
    List<Object> arguments = new ArrayList<>(List.of("inspect", "--cache-bytes", "abc", index));
    if (withFolder) {
      arguments.addAll(List.of("--cache-folder", temporary.resolve("cache")));
    }
    CommandLineRun refused = CommandLineRun.of(arguments.toArray());
    assertThat(refused.exitCode()).isEqualTo(64);
    assertThat(refused.err()).contains("--cache-bytes").contains("(was abc)").hasLineCount(1);
    assertThat(TestSamples.run("inspect", "--cache-bytes", "10MB", index).out()).isNotEmpty();
  }

  @Test
  void loadTellsHowFast() {
    List<String> lines =
        TestSamples.run("load", "--device", "host", "--repeat", 2, index).out().lines().toList();
    assertThat(lines).hasSize(3);
    assertThat(lines.get(1)).contains("host");
  }

  @Test
  void convertWritesALocalCopy() {
    Path copy = temporary.resolve("copy.safetensors");
    TestSamples.run("convert", index, copy);
    assertThat(tensorsOf(copy)).isEqualTo(tensorsOf(model));
  }

  @Test
  void numpyComesByRangesToo() throws IOException {
    for (String name : List.of("fortran.npy", "deflated.npz")) {
      Location remote = server.put(name, Files.readAllBytes(NUMPY.resolve(name)));
      assertThat(tensorsOf(remote)).isEqualTo(tensorsOf(NUMPY.resolve(name)));
    }
  }

  @Test
  void whatIsNotThereIsExitCode66() {
    for (String command : List.of("inspect", "digest", "load")) {
      CommandLineRun run = TestSamples.fail(66, command, server.missing("none.safetensors"));
      assertThat(run.err()).contains("none.safetensors").contains("404");
    }
    server.before(exchange -> {
      exchange.sendResponseHeaders(410, -1);
      exchange.close();
      return true;
    });
    assertThat(TestSamples.fail(66, "inspect", index).err()).contains("410");
  }

  /// Each of these answers must give an error, and never bytes of another range or file.
  @ParameterizedTest
  @EnumSource(names = {"WHOLE_FILE", "NO_RANGE", "OTHER_RANGE", "ENCODED", "FORBIDDEN"})
  void aServerThatDoesNotServeRangesIsExitCode74(Answer answer) {
    server.answerAll(answer);
    TestSamples.fail(74, "digest", index);
  }

  @Test
  void aServerWithoutRangesIsNamedAsSuch() {
    server.answerAll(Answer.WHOLE_FILE);
    assertThat(TestSamples.fail(74, "inspect", index).err()).contains("range");
  }

  /// The server's ETag changes after the headers were read.
  @Test
  void aFileThatChangesMeanwhileIsExitCode74() {
    Location file = server.missing("model-00001-of-00003.safetensors");
    server.answer(number -> number == 0 ? Answer.RIGHT : Answer.OTHER_ETAG);
    TestSamples.fail(74, "digest", file);
  }

  @Test
  void anErrorPageIsCalledThat() {
    Location page =
        server.put(
            "page.safetensors", "<!DOCTYPE html><html></html>".getBytes(StandardCharsets.UTF_8));
    assertThat(TestSamples.fail(65, "inspect", page).err()).contains("HTML");
  }

  @Test
  void aSchemeThatNoStoreServesIsMisuse() {
    CommandLineRun run = TestSamples.fail(64, "inspect", "gopher://host/model.safetensors");
    assertThat(run.err()).contains("gopher");
  }
}
