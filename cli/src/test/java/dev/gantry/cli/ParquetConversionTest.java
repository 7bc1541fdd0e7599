// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// `convert` of Parquet that pyarrow wrote (`make_parquet.py`).
@ExtendWith(NoLeaks.class)
class ParquetConversionTest {
  private static final Path FILES = Path.of("src/test/resources/parquet");
  private static final String COLUMNS = "id,label,small,short,flag,x,y,half,vec,fixed,blob,fbin";

  @TempDir private Path temporary;

  private Path out() {
    return temporary.resolve("out");
  }

  private static Map<String, String> digests() throws IOException {
    Map<String, String> digests = new HashMap<>();
    for (String line : Files.readAllLines(FILES.resolve("expected.txt"))) {
      int space = line.indexOf(' ');
      digests.put(line.substring(0, space), line.substring(space + 1));
    }
    return digests;
  }

  private static Map<String, Object> field(String dtype, List<Integer> shape, String sha256) {
    return Map.of("dtype", dtype, "shape", shape, "sha256", sha256);
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "snappy", "zstd", "gzip", "v2"})
  void columnsBecomeFields(String codec) throws IOException {
    TestSamples.run("convert", "--columns", COLUMNS, FILES.resolve(codec + ".parquet"), out());
    Map<String, String> digests = digests();
    Map<String, Object> expected = new HashMap<>();
    List<String> dtypes = List.of("I64", "I32", "U8", "I16", "BOOL", "F32", "F64", "F16");
    List<String> names = Arrays.asList(COLUMNS.split(","));
    for (int i = 0; i < dtypes.size(); i++) {
      expected.put(names.get(i), field(dtypes.get(i), List.of(), digests.get(names.get(i))));
    }
    expected.put("vec", field("F32", List.of(4), digests.get("vec")));
    expected.put("fixed", field("I64", List.of(3), digests.get("fixed")));
    expected.put("blob", field("U8", List.of(6), digests.get("blob")));
    expected.put("fbin", field("U8", List.of(5), digests.get("fbin")));
    assertThat(TestSamples.fieldsOf(out())).isEqualTo(expected);
  }

  @Test
  void integersOfAllWidthsKeepTheirSign() {
    TestSamples.run("convert", FILES.resolve("integers.parquet"), out());
    Map<String, Object> expected = new HashMap<>();
    for (int bytes = 1; bytes <= 8; bytes *= 2) {
      byte[] value = new byte[2 * bytes];
      Arrays.fill(value, bytes, 2 * bytes, (byte) -1);
      for (String kind : List.of("I", "U")) {
        expected.put(
            kind.toLowerCase(Locale.ROOT) + 8 * bytes,
            field(kind + 8 * bytes, List.of(), TestSamples.sha256(value)));
      }
    }
    assertThat(TestSamples.fieldsOf(out())).isEqualTo(expected);
  }

  @Test
  void listsOfHalvesBecomeFields() {
    TestSamples.run("convert", FILES.resolve("halves.parquet"), out());
    ByteBuffer values = ByteBuffer.allocate(12 * Short.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < 12; i++) {
      values.putShort(Float.floatToFloat16(i));
    }
    Object expected = field("F16", List.of(3), TestSamples.sha256(values.array()));
    assertThat(TestSamples.fieldsOf(out())).isEqualTo(Map.of("list", expected, "fixed", expected));
  }

  @Test
  void severalFilesBecomeOneSet() {
    Path file = FILES.resolve("zstd.parquet");
    CommandLineRun run =
        TestSamples.run("convert", "--columns", "id", "--samples-per-shard", 30, file, file, out());
    assertThat(run.out()).contains("5 file(s)");
  }

  @Test
  void filesOfOtherColumnsAreRefused() {
    CommandLineRun run =
        TestSamples.fail(
            65, "convert", FILES.resolve("only-a.parquet"), FILES.resolve("only-b.parquet"), out());
    assertThat(run.err())
        .contains(
            "only-b.parquet: offset 0: other-columns: the columns are [b], but those of the files"
                + " before are [a]");
    assertThat(Logger.getLogger("dev.hardwood.reader").isLoggable(Level.INFO)).isFalse();
  }

  @Test
  void aColumnOfTextsBecomesTokens() throws IOException {
    Path tokenizer =
        Files.writeString(
            temporary.resolve("tokenizer.json"),
            "{\"version\": \"1.0\", \"added_tokens\": [], \"pre_tokenizer\": {\"type\":"
                + " \"Whitespace\"}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\","
                + " \"vocab\": {\"?\": 0, \"the\": 1, \"cat\": 2}}}");
    TestSamples.run(
        "convert",
        "--tokens",
        4,
        "--tokenizer",
        tokenizer,
        "--eos",
        "the",
        FILES.resolve("snappy.parquet"),
        out());
    byte[] tokens = new byte[50 * 16];
    for (int i = 0; i < 50; i++) {
      tokens[16 * i] = 1;
      tokens[16 * i + 4] = 2;
      tokens[16 * i + 12] = 1;
    }
    assertThat(TestSamples.fieldsOf(out()))
        .isEqualTo(Map.of("tokens", field("I32", List.of(4), TestSamples.sha256(tokens))));
    Path other = temporary.resolve("other");
    assertThat(
            TestSamples.fail(
                    65,
                    "convert",
                    "--tokens",
                    4,
                    "--tokenizer",
                    tokenizer,
                    "--eos",
                    "the",
                    "--text",
                    "id",
                    FILES.resolve("snappy.parquet"),
                    other)
                .err())
        .contains(
            "snappy.parquet: offset 0: no-text: no column 'id' holds texts; the columns are [");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "snappy|unsupported-column: the column 'text'",
        "nulls|null-value: row 1: 'a' is null",
        "ragged|wrong-length: row 1: 'a' is I64 of 16 bytes, but 'a' of the first row is I64 of 8",
        "nested|unsupported-column: the column 'a.list.element.list.element' (INT64, in 2 lists)",
        "struct|unsupported-column: the column 'image.path'",
        "structs|unsupported-column: the column 'a.list.element.x' (INT64, in a list of structs)",
        "twice|same-name: two columns would become the field 'a'",
        "empty|no-rows: there are no rows",
        "brotli|unsupported-codec: the column 'id' is compressed with BROTLI; supported are"
            + " [UNCOMPRESSED, "
      })
  void whatIsNoFieldIsRefused(String name, String fault) {
    String columns = name.equals("brotli") ? "id" : "";
    List<Object> arguments =
        new ArrayList<>(List.of("convert", FILES.resolve(name + ".parquet"), out()));
    if (!columns.isEmpty()) {
      arguments.addAll(List.of("--columns", columns));
    }
    CommandLineRun run = TestSamples.fail(65, arguments.toArray());
    assertThat(run.err()).contains(name + ".parquet: offset 0: ").contains(fault);
    assertThat(out()).doesNotExist();
  }

  @Test
  void fieldsOfStructsAreNamedByTheirPath() {
    TestSamples.run(
        "convert", "--columns", "image.bytes,label", FILES.resolve("struct.parquet"), out());
    assertThat(TestSamples.fieldsOf(out()).keySet()).isEqualTo(Set.of("image.bytes", "label"));
  }

  /// The Parquet library splits names at dots, and finds a column of a struct by its last name.
  @Test
  void columnsMayHaveDotsInTheirNamesOrTheLastNamesOfOthers() {
    Map<String, Object> expected =
        Map.of(
            "camera.state",
            field("I8", List.of(2), TestSamples.sha256(new byte[] {1, 2, 3, 4})),
            "s.x",
            field("I8", List.of(), TestSamples.sha256(new byte[] {5, 6})),
            "x",
            field("I8", List.of(), TestSamples.sha256(new byte[] {7, 8})));
    for (String columns : List.of("camera.state,s.x,x", "camera.state", "x", "s.x", "x,s.x")) {
      Path out = temporary.resolve(columns);
      TestSamples.run("convert", "--columns", columns, FILES.resolve("names.parquet"), out);
      Map<String, Object> chosen = new HashMap<>(expected);
      chosen.keySet().retainAll(Arrays.asList(columns.split(",")));
      assertThat(TestSamples.fieldsOf(out)).isEqualTo(chosen);
    }
  }

  @Test
  void missingColumnsAndFilesAreNamed() {
    Path file = FILES.resolve("none.parquet");
    assertThat(TestSamples.fail(64, "convert", "--columns", "idd", file, out()).err())
        .contains("--columns: " + file + " has no column 'idd'; its columns are [id, ");
    assertThat(TestSamples.fail(66, "convert", temporary.resolve("a.parquet"), out()).err())
        .contains("ENOENT");
  }

  /// Each damaged file becomes samples, or gives one line of error. Exceptions of the Parquet
  /// library do not reach the user.
  @Test
  void damagedFilesAreReadOrRefused() throws IOException {
    long seed = System.nanoTime();
    SplittableRandom random = new SplittableRandom(seed);
    byte[] whole = Files.readAllBytes(FILES.resolve("zstd.parquet"));
    Path file = temporary.resolve("damaged.parquet");
    for (int i = 0; i < Integer.getInteger("gantry.mutations", 50); i++) {
      byte[] bytes = whole.clone();
      for (int change = random.nextInt(1, 4); change > 0; change--) {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
      }
      Files.write(
          file,
          random.nextInt(10) == 0 ? Arrays.copyOf(bytes, random.nextInt(bytes.length)) : bytes);
      Path each = temporary.resolve("out" + i);
      CommandLineRun run = CommandLineRun.of("convert", "--columns", COLUMNS, file, each);
      assertThat(run.exitCode()).as("seed %d, %d: %s", seed, i, run.err()).isIn(0, 64, 65);
      assertThat(run.err().lines().count()).isLessThan(2);
    }
  }
}
