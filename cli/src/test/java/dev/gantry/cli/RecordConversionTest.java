// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.samples.demo.DigitAnswers;
import dev.gantry.testing.NoLeaks;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// `convert` between TFRecord and raw tensor shards.
@ExtendWith(NoLeaks.class)
class RecordConversionTest {
  @TempDir private Path temporary;

  private static ExampleBuilder example(int number) {
    return new ExampleBuilder()
        .int64s("label", number)
        .floats("x", number, -number, 0.5f)
        .bytes("image", new byte[] {(byte) number, 1, 2, 3});
  }

  /// Writes three records with the same features.
  private Path records(Compression compression) {
    return TestSamples.writeRecords(
        temporary.resolve("in.tfrecord"), compression, example(1), example(2), example(3));
  }

  private Path records(ExampleBuilder... examples) {
    return TestSamples.writeRecords(temporary.resolve("in.tfrecord"), Compression.NONE, examples);
  }

  private static byte[] longs(long... values) {
    ByteBuffer bytes = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (long value : values) {
      bytes.putLong(value);
    }
    return bytes.array();
  }

  private static Map<String, Object> field(String dtype, List<Integer> shape, byte[] values) {
    return Map.of("dtype", dtype, "shape", shape, "sha256", TestSamples.sha256(values));
  }

  private void assertRefused(int exitCode, String part, Object... arguments) throws IOException {
    List<String> before = TestSamples.names(temporary);
    CommandLineRun run =
        TestSamples.fail(
            exitCode, Stream.concat(Stream.of("convert"), Stream.of(arguments)).toArray());
    assertThat(run.err()).contains(part);
    assertThat(TestSamples.names(temporary)).isEqualTo(before);
  }

  @ParameterizedTest
  @EnumSource
  void featuresBecomeFields(Compression compression) throws IOException {
    Path shards = temporary.resolve("out");
    CommandLineRun run =
        TestSamples.run("convert", "--samples-per-shard", 2, records(compression), shards);
    assertThat(run.out()).matches("\\S+out: 3 file\\(s\\), [0-9,]+ bytes, durable in .* GB/s\n");
    assertThat(TestSamples.names(shards))
        .containsExactly("shard-00000.bin", "shard-00001.bin", "shards.json");
    Map<?, ?> fields = TestSamples.fieldsOf(shards);
    assertThat(fields.keySet().stream().map(Object::toString))
        .containsExactly("image", "label", "x");
    assertThat(fields.get("label")).isEqualTo(field("I64", List.of(), longs(1, 2, 3)));
    assertThat(fields.get("image"))
        .isEqualTo(field("U8", List.of(4), new byte[] {1, 1, 2, 3, 2, 1, 2, 3, 3, 1, 2, 3}));
    ByteBuffer floats = ByteBuffer.allocate(36).order(ByteOrder.LITTLE_ENDIAN);
    for (int number = 1; number <= 3; number++) {
      floats.putFloat(number).putFloat(-number).putFloat(0.5f);
    }
    assertThat(fields.get("x")).isEqualTo(field("F32", List.of(3), floats.array()));
  }

  @Test
  void theFilesWrittenAreListed() throws IOException {
    Path shards = temporary.resolve("out");
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("convert", "--json", records(Compression.NONE), shards));
    Path shard = shards.resolve("shard-00000.bin");
    Path index = shards.resolve("shards.json");
    assertThat(document.get("files"))
        .isEqualTo(
            List.of(
                Map.of("file", shard.toString(), "bytes", (int) Files.size(shard)),
                Map.of("file", index.toString(), "bytes", (int) Files.size(index))));
    assertThat(document.get("bytes")).isEqualTo((int) (Files.size(shard) + Files.size(index)));
    assertThat(((Number) document.get("seconds")).doubleValue()).isPositive();
  }

  @Test
  void aChosenTypeAndShapeIsKept() {
    Path shards = temporary.resolve("out");
    TestSamples.run(
        "convert",
        "--field",
        "image=U16[1, 2]",
        "--field=label=I64[1]",
        records(Compression.NONE),
        shards);
    Map<?, ?> fields = TestSamples.fieldsOf(shards);
    assertThat(fields.get("image"))
        .isEqualTo(field("U16", List.of(1, 2), new byte[] {1, 1, 2, 3, 2, 1, 2, 3, 3, 1, 2, 3}));
    assertThat(fields.get("label")).isEqualTo(field("I64", List.of(1), longs(1, 2, 3)));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "image",
        "image=U8",
        "image=U9[4]",
        "image=U8[-4]",
        "image=U8[5]",
        "image=F6_E2M3[4]",
        "label=F64[]",
        "other=U8[4]",
        "image=U8[99999999999999999,99999999999999999]"
      })
  void aTypeThatDoesNotFitIsExitCode64(String type) throws IOException {
    Path in = records(Compression.NONE);
    assertRefused(64, type.substring(0, 5), "--field", type, in, temporary.resolve("out"));
  }

  @Test
  void aTypeTwiceIsExitCode64() throws IOException {
    assertRefused(
        64,
        "'image' is given twice",
        "--field=image=U8[4]",
        "--field=image=U8[2,2]",
        records(Compression.NONE),
        temporary.resolve("out"));
  }

  @Test
  void raggedFeaturesAreRefusedWithTheirRecord() throws IOException {
    Path in = records(example(1), example(2).floats("x", 1));
    int offset = 16 + example(1).toBytes().length;
    assertRefused(
        65,
        in
            + ": offset "
            + offset
            + ": wrong-length: record 1: feature 'x' has length 1, not 3; --pad fills",
        in,
        temporary.resolve("out"));
  }

  @Test
  void otherSetsOfFeaturesAreRefusedWithTheirRecord() throws IOException {
    int offset = 16 + example(1).toBytes().length;
    Path more = records(example(1), example(2).int64s("more", 1), example(3));
    assertRefused(
        65,
        "offset " + offset + ": unknown-feature: record 1: feature 'more'",
        more,
        temporary.resolve("out"));
    Path fewer = records(example(1), new ExampleBuilder().int64s("label", 1));
    assertRefused(
        65, "; --pad fills shorter and missing features with 0", fewer, temporary.resolve("out"));
    assertRefused(
        65,
        "offset " + offset + ": missing-feature: record 1: the record lacks feature 'image'",
        fewer,
        temporary.resolve("out"));
    Path other = records(example(1), example(2).floats("label", 1));
    assertRefused(
        65,
        "offset " + offset + ": wrong-kind: record 1: feature 'label'",
        other,
        temporary.resolve("out"));
  }

  /// The command fails after it has written a shard, and must remove that shard.
  @Test
  void aFailureLeavesAFolderAsItWas() throws IOException {
    Path out = Files.createDirectory(temporary.resolve("out"));
    Files.writeString(out.resolve("notes"), "not ours");
    Path in = records(example(1), example(2), example(3).floats("x", 1));
    assertRefused(65, "record 2", "--samples-per-shard", 1, in, out);
    assertThat(TestSamples.names(out)).containsExactly("notes");
  }

  /// The library logs a warning when a writer is closed before it has finished. A command must
  /// not print this warning, because its own line says why.
  @Test
  void aFailureIsOneLineAndNoneOfTheLibrary() throws IOException {
    Path in = records(example(1), example(2), example(3).floats("x", 1));
    PrintStream before = System.err;
    ByteArrayOutputStream log = new ByteArrayOutputStream();
    System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
    try {
      assertRefused(65, "record 2", in, temporary.resolve("out"));
    } finally {
      System.setErr(before);
    }
    assertThat(log.toString(StandardCharsets.UTF_8)).isEmpty();
  }

  @Test
  void paddingFillsUpToTheLongestAndKeepsTheLengths() {
    Path in =
        records(
            new ExampleBuilder().int64s("a", 1).int64s("b", 7),
            new ExampleBuilder().int64s("a", 2, 3),
            new ExampleBuilder().int64s("b", 8));
    Path out = temporary.resolve("out");
    TestSamples.run("convert", "--pad", in, out);
    Map<?, ?> fields = TestSamples.fieldsOf(out);
    assertThat(fields.get("a")).isEqualTo(field("I64", List.of(2), longs(1, 0, 2, 3, 0, 0)));
    assertThat(fields.get("a_length")).isEqualTo(field("I64", List.of(), longs(1, 2, 0)));
    assertThat(fields.get("b")).isEqualTo(field("I64", List.of(1), longs(7, 0, 8)));
    assertThat(fields.get("b_length")).isEqualTo(field("I64", List.of(), longs(1, 0, 1)));
  }

  @Test
  void severalStringsInARecordAreRefused() throws IOException {
    Path in = records(example(1).bytes("words", new byte[1], new byte[2]));
    assertRefused(65, "record 0: feature 'words'", in, temporary.resolve("out"));
    assertRefused(65, "record 0: feature 'words'", "--pad", in, temporary.resolve("out"));
    Path alone = records(new ExampleBuilder().bytes("words", new byte[1], new byte[2]));
    assertRefused(65, "no-features", alone, temporary.resolve("out"));
  }

  @Test
  void noRecordsAreRefused() throws IOException {
    assertRefused(65, "no-records", records(), temporary.resolve("out"));
  }

  @Test
  void dtypesBecomeTheirKinds() {
    List<Field> fields = new ArrayList<>();
    Map<String, byte[]> values = new HashMap<>();
    byte[] bytes = {1, -1, 2, -2, 3, -3, 4, -4};
    for (DType dtype : DType.values()) {
      if (dtype.bits() % 8 == 0) {
        fields.add(new Field(dtype.name(), dtype, TensorShape.of(64 / dtype.bits())));
        values.put(
            dtype.name(), dtype == DType.BOOL ? new byte[] {1, 0, -1, 0, 0, 0, 2, 1} : bytes);
      }
    }
    Path shards = temporary.resolve("shards");
    TestSamples.writeShards(shards, fields, values, 1, 1);
    Path file = temporary.resolve("out.tfrecord");
    TestSamples.run("convert", shards, file);

    ByteBuffer all = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    ExampleBuilder expected = new ExampleBuilder();
    for (Field field : fields) {
      String name = field.name();
      switch (field.dtype()) {
        case F32 -> expected.floats(name, all.getFloat(0), all.getFloat(4));
        case BOOL -> expected.int64s(name, 1, 0, 1, 0, 0, 0, 1, 1);
        case I8 -> expected.int64s(name, 1, -1, 2, -2, 3, -3, 4, -4);
        case I16 -> expected.int64s(name, -255, -510, -765, -1020);
        case U16 -> expected.int64s(name, 65281, 65026, 64771, 64516);
        case I32 -> expected.int64s(name, all.getInt(0), all.getInt(4));
        case U32 ->
            expected.int64s(
                name, Integer.toUnsignedLong(all.getInt(0)), Integer.toUnsignedLong(all.getInt(4)));
        case I64 -> expected.int64s(name, all.getLong(0));
        default -> expected.bytes(name, bytes);
      }
    }
    assertThat(TestSamples.recordsOf(file))
        .isEqualTo(List.of(TestSamples.sha256(expected.toBytes())));
  }

  @Test
  void severalFilesTakeTheSamplesInOrder() throws IOException {
    Path in = records(Compression.NONE);
    Path shards = temporary.resolve("shards");
    TestSamples.run("convert", "--samples-per-shard", 2, in, shards);
    Path out = Files.createDirectory(temporary.resolve("out"));
    TestSamples.run(
        "convert", "--shards", 2, "--compression", "zlib", shards, out.resolve("train"));
    assertThat(TestSamples.names(out))
        .containsExactly("_gantry-files-train", "train-00000-of-00002", "train-00001-of-00002");
    assertThat(TestSamples.recordsOf(out)).isEqualTo(TestSamples.recordsOf(in));
    assertThat(TestSamples.json(TestSamples.run("inspect", "--json", out)).get("compression"))
        .isEqualTo("zlib");
    Path again = temporary.resolve("again");
    TestSamples.run("convert", out, again);
    assertThat(TestSamples.fieldsOf(again)).isEqualTo(TestSamples.fieldsOf(shards));
  }

  @Test
  void damagedShardsAreRefused() throws IOException {
    Path shards = temporary.resolve("shards");
    TestSamples.run("convert", records(Compression.NONE), shards);
    Path shard = shards.resolve("shard-00000.bin");
    byte[] bytes = Files.readAllBytes(shard);
    bytes[2]++;
    Files.write(shard, bytes);
    String part = shard + ": offset 0: checksum-mismatch: ";
    assertRefused(65, part, shards, temporary.resolve("out"));
    assertThat(TestSamples.fail(65, "digest", shards).err()).contains(part);
    Files.write(shard, new byte[3]);
    assertRefused(65, "truncated-shard", shards, temporary.resolve("out"));
    assertThat(TestSamples.fail(65, "inspect", shards).err()).contains("truncated-shard");
  }

  @Test
  void optionsThatAreNotForTheInputAreExitCode64() throws IOException {
    Path in = records(Compression.NONE);
    Path out = temporary.resolve("out");
    Path shards = temporary.resolve("shards");
    TestSamples.run("convert", in, shards);
    Path model = DigitAnswers.extract(Files.createDirectory(temporary.resolve("model")));
    assertRefused(64, "--shards", "--shards", 2, in, out);
    assertRefused(64, "--compression", "--compression", "gzip", in, out);
    assertRefused(64, "--compression", "--compression", "rar", shards, out);
    assertRefused(64, "--pad", "--pad", shards, out);
    assertRefused(64, "--shard-bytes", "--shard-bytes", 9, shards, out);
    assertRefused(64, "--field", "--field", "a=U8[1]", model, out);
    assertRefused(64, "--samples-per-shard", "--samples-per-shard", 1, model, out);
    assertRefused(64, "--samples-per-shard", "--samples-per-shard", 0, in, out);
    assertRefused(
        64,
        "--samples-per-shard must be 1 to 2147483647 (was 9999999999)",
        "--samples-per-shard",
        9_999_999_999L,
        in,
        out);
    assertRefused(64, "--shard-bytes must be at least 1 (was 0)", "--shard-bytes", 0, in, out);
    assertRefused(64, "cannot be combined", "--shard-bytes", 9, "--samples-per-shard", 1, in, out);
    assertRefused(64, "--shards must be 1 to 1024 (was 0)", "--shards", 0, shards, out);
    assertRefused(64, "1025", "--shards", 1025, shards, out);
  }

  @Test
  void whatIsThereIsNotSpoiled() throws IOException {
    Path in = records(Compression.NONE);
    Path shards = temporary.resolve("shards");
    TestSamples.run("convert", in, shards);
    assertRefused(64, "holds samples already", in, shards);
    assertRefused(64, "OUT must not be the folder of IN", in, temporary);
    assertRefused(64, "OUT must be a TFRecord file", shards, temporary);
    Path index = shards.resolve("shards.json");
    assertRefused(64, "OUT must not be a file of IN", shards, index);
    assertRefused(64, "OUT must be a folder", in, temporary.resolve("out.safetensors"));
    assertRefused(
        64, "OUT must not be a safetensors file", shards, temporary.resolve("out.safetensors"));
    assertThat(TestSamples.recordsOf(in)).hasSize(3);
  }

  @Test
  void anOldRecordFileIsReplaced() {
    Path in = records(Compression.NONE);
    Path shards = temporary.resolve("shards");
    TestSamples.run("convert", in, shards);
    List<?> before = TestSamples.recordsOf(in);
    Path old =
        TestSamples.writeRecords(
            temporary.resolve("old"), Compression.NONE, new ExampleBuilder().int64s("a", 1));
    TestSamples.run("convert", shards, old);
    assertThat(TestSamples.recordsOf(old)).isEqualTo(before);
  }
}
