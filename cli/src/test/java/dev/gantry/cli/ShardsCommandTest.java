// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// `inspect` and `digest` of raw tensor shards.
@ExtendWith(NoLeaks.class)
class ShardsCommandTest {
  private static final List<Field> FIELDS =
      List.of(
          new Field("image", DType.U8, TensorShape.of(2, 3)),
          new Field("weight", DType.F16, TensorShape.of()));
  private static final byte[] IMAGES = new byte[5 * 6];
  private static final byte[] WEIGHTS = new byte[5 * 2];

  @TempDir private Path temporary;
  private Path shards;

  @BeforeEach
  void write() {
    for (int i = 0; i < IMAGES.length; i++) {
      IMAGES[i] = (byte) i;
    }
    for (int i = 0; i < WEIGHTS.length; i++) {
      WEIGHTS[i] = (byte) (100 + i);
    }
    shards = temporary.resolve("shards");
    TestSamples.writeShards(shards, FIELDS, Map.of("image", IMAGES, "weight", WEIGHTS), 5, 2);
  }

  @Test
  void digestIsOfAllSamplesEndToEnd() {
    CommandLineRun run = TestSamples.run("digest", "--json", "--device", "host", shards);
    Map<?, ?> document = TestSamples.json(run);
    assertThat(document.keySet().stream().map(Object::toString))
        .containsExactly("fields", "samples", "bytes", "transport");
    assertThat(document.get("fields"))
        .isEqualTo(
            Map.of(
                "image",
                Map.of("dtype", "U8", "shape", List.of(2, 3), "sha256", TestSamples.sha256(IMAGES)),
                "weight",
                Map.of("dtype", "F16", "shape", List.of(), "sha256", TestSamples.sha256(WEIGHTS))));
    assertThat(document.get("samples")).isEqualTo(5);
    assertThat(document.get("bytes")).isEqualTo(40);
    Map<?, ?> transports = (Map<?, ?>) document.get("transport");
    assertThat(transports.keySet().stream().map(Object::toString))
        .containsExactly("gds", "compat", "staged", "mapped", "host");
    assertThat((Integer) transports.get("host")).isGreaterThanOrEqualTo(40);
    assertThat(TestSamples.run("digest", shards.resolve("shards.json")).out().lines())
        .containsExactly(
            TestSamples.sha256(IMAGES) + "  image", TestSamples.sha256(WEIGHTS) + "  weight");
  }

  @Test
  void inspectSaysWhatIsInThem() throws IOException {
    Map<?, ?> document = TestSamples.json(TestSamples.run("inspect", "--json", shards));
    assertThat(document.keySet().stream().map(Object::toString))
        .containsExactly(
            "format", "fields", "samples", "bytes", "blockBytes", "shards", "metadata");
    assertThat(document.get("format")).isEqualTo("gantry-shards");
    assertThat(document.get("fields"))
        .isEqualTo(
            Map.of(
                "image", Map.of("dtype", "U8", "shape", List.of(2, 3)),
                "weight", Map.of("dtype", "F16", "shape", List.of())));
    assertThat(document.get("samples")).isEqualTo(5);
    assertThat(document.get("blockBytes")).isEqualTo(4096);
    List<?> files = (List<?>) document.get("shards");
    assertThat(files).hasSize(3);
    long bytes = 0;
    for (Object each : files) {
      Path file = Path.of((String) ((Map<?, ?>) each).get("file"));
      assertThat(((Number) ((Map<?, ?>) each).get("bytes")).longValue())
          .isEqualTo(Files.size(file));
      bytes += Files.size(file);
    }
    assertThat(((Number) document.get("bytes")).longValue()).isEqualTo(bytes);
    assertThat(TestSamples.run("inspect", shards).out())
        .startsWith("raw tensor shards, 3 file(s), 5 samples, ")
        .contains("image", "U8", "[2, 3]", "shard-00002.bin");
  }

  @Test
  void noSamplesHaveDigestsToo() {
    Path empty = temporary.resolve("empty");
    TestSamples.writeShards(
        empty, FIELDS, Map.of("image", new byte[0], "weight", new byte[0]), 0, 2);
    Map<?, ?> document = TestSamples.json(TestSamples.run("digest", "--json", empty));
    Map<?, ?> image = (Map<?, ?>) ((Map<?, ?>) document.get("fields")).get("image");
    assertThat(image.get("sha256")).isEqualTo(TestSamples.sha256(new byte[0]));
    assertThat(TestSamples.run("inspect", empty).out()).contains("0 file(s), 0 samples");
    Path records = temporary.resolve("records");
    TestSamples.run("convert", empty, records);
    assertThat(records).isEmptyFile();
  }

  @Test
  void aBrokenIndexIsNamedInOneLine() throws IOException {
    Path index = shards.resolve("shards.json");
    Files.writeString(index, Files.readString(index).replace("\"samples\"", "\"sample\""));
    for (String command : List.of("inspect", "digest")) {
      assertThat(TestSamples.fail(65, command, shards).err())
          .startsWith("gantry: " + index + ": offset ");
    }
  }

  @Test
  void damagedSamplesHaveNoDigests() throws IOException {
    Path shard;
    try (Stream<Path> files = Files.list(shards)) {
      shard =
          files.filter(file -> !file.endsWith("shards.json")).sorted().findFirst().orElseThrow();
    }
    byte[] bytes = Files.readAllBytes(shard);
    bytes[0] ^= 1;
    Files.write(shard, bytes);
    CommandLineRun run = CommandLineRun.of("digest", "--device", "host", shards);
    assertThat(run.exitCode()).isEqualTo(65);
    assertThat(run.err()).contains("checksum-mismatch");
    assertThat(run.out()).isEmpty();
  }
}
