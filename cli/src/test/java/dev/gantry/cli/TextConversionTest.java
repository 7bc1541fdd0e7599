// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.training.dataset.Batch;
import dev.gantry.djl.ShardDataset;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// `convert` of texts to blocks of tokens.
@ExtendWith(NoLeaks.class)
class TextConversionTest {
  private static final String TOKENIZER =
      """
      {"version": "1.0", "truncation": {"max_length": 2, "stride": 0, "strategy": "LongestFirst", "direction": "Right"},
       "padding": null, "normalizer": null,
       "added_tokens": [{"id": 6, "content": "<eos>", "single_word": false, "lstrip": false, "rstrip": false,
         "normalized": false, "special": true}],
       "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
       "model": {"type": "WordLevel", "unk_token": "<unk>",
         "vocab": {"<unk>": 0, "the": 1, "cat": 2, "sat": 3, "dog": 4, "ran": 70000}}}
      """;

  @TempDir private Path temporary;
  private Path tokenizer;
  private Path out;

  @BeforeEach
  void writeTokenizer() throws IOException {
    tokenizer = Files.writeString(temporary.resolve("tokenizer.json"), TOKENIZER);
    Files.writeString(
        temporary.resolve("tokenizer_config.json"),
        "{\"a\": {\"eos_token\": \"no\"}, \"eos_token\": {\"content\": \"<eos>\"}}");
    out = temporary.resolve("out");
  }

  private Path lines(String name, String... lines) throws IOException {
    return Files.writeString(temporary.resolve(name), String.join("\n", lines));
  }

  private static Path gzip(Path file) throws IOException {
    Path zipped = file.resolveSibling(file.getFileName() + ".gz");
    try (OutputStream stream = new GZIPOutputStream(Files.newOutputStream(zipped))) {
      stream.write(Files.readAllBytes(file));
    }
    return zipped;
  }

  private CommandLineRun convert(int block, Object... rest) {
    return TestSamples.run(
        Stream.concat(
                Stream.of("convert", "--tokens", block, "--tokenizer", tokenizer), Stream.of(rest))
            .toArray());
  }

  private void assertTokens(int block, int... tokens) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * tokens.length).order(ByteOrder.LITTLE_ENDIAN);
    for (int token : tokens) {
      bytes.putInt(token);
    }
    assertThat(TestSamples.fieldsOf(out))
        .isEqualTo(
            Map.of(
                "tokens",
                Map.of(
                    "dtype", "I32",
                    "shape", List.of(block),
                    "sha256", TestSamples.sha256(bytes.array()))));
  }

  @Test
  void textsFollowOneAnotherInBlocksAndTheRestIsLeftOut() throws IOException {
    Path first = lines("a.jsonl", "{\"id\": 1, \"text\": \"the cat sat\"}", "", "{\"text\": \"\"}");
    Path second = gzip(lines("b.jsonl", "{\"text\": \"the dog\", \"more\": {\"text\": [1]}}", ""));
    convert(3, first, second, out);
    assertTokens(3, 1, 2, 3, 6, 6, 1);
  }

  @Test
  void theLastBlockIsFilledUpIfAsked() throws IOException {
    convert(
        4, "--pad", "--text", "body", lines("a.jsonl", "{\"body\": \"cat ran dog sat the\"}"), out);
    assertTokens(4, 2, 70000, 4, 3, 1, 6, 6, 6);
  }

  @Test
  void anotherTokenMayEndTextsAndNumbersMayBeNarrow() throws IOException {
    convert(2, "--eos", "sat", "--u16", lines("a.jsonl", "{\"text\": \"the cat nobody\"}"), out);
    assertThat(TestSamples.fieldsOf(out).get("tokens"))
        .isEqualTo(
            Map.of(
                "dtype", "U16",
                "shape", List.of(2),
                "sha256", TestSamples.sha256(new byte[] {1, 0, 2, 0, 0, 0, 3, 0})));
    try (ShardDataset dataset = ShardDataset.builder().setPath(out).setSampling(2).build();
        NDManager manager = NDManager.newBaseManager();
        Batch batch = dataset.getData(manager).iterator().next()) {
      NDArray tokens = batch.getData().singletonOrThrow();
      assertThat(tokens.toType(DataType.INT32, true).toIntArray()).containsExactly(1, 2, 0, 3);
    }
  }

  /// There are more texts than are tokenized at once, and more tokens than one shard holds.
  @Test
  void manyTextsBecomeManyShards() throws IOException {
    String text = "{\"text\": \"the cat sat\"}";
    Path file = lines("a.jsonl", Stream.generate(() -> text).limit(1000).toArray(String[]::new));
    convert(8, "--samples-per-shard", 100, file, out);
    assertTokens(
        8,
        Stream.generate(() -> new int[] {1, 2, 3, 6})
            .limit(1000)
            .flatMapToInt(Arrays::stream)
            .toArray());
    assertThat(TestSamples.names(out)).hasSize(6);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{\"text\": \"a\"},[1]| no-object: line 2: there is an array",
        "{\"text\": \"a\"},{\"texts\": \"b\"}|no-text: line 2: the object of line 2 has no member"
            + " 'text'",
        "{\"text\": 5}|no-text: line 1: the member 'text' is a number",
        "{\"text\": \"a\"},{\"text\": \"b|invalid-json: line 2: ",
        "{\"text\": \"a\"},{\"text\": \"b\" \"c\"}|invalid-json: line 2: ",
        "{\"text\": \"a\"|invalid-json: line 1: Unexpected end-of-input"
      })
  void aDamagedLineIsNamed(String lines, String fault) throws IOException {
    Path file = lines("a.jsonl", lines.split(","));
    assertRefused(65, file + ": offset ", file, out);
    assertRefused(65, fault.strip(), file, out);
  }

  @Test
  void textsThatFillNoBlockAreRefused() throws IOException {
    assertRefused(
        64, "2 tokens, too few for a block of 4", lines("a.jsonl", "{\"text\": \"a\"}"), out);
    assertRefused(65, "b.jsonl: offset 0: no-text", "--pad", lines("b.jsonl", "", ""), out);
    assertRefused(64, "not folders", temporary, out);
  }

  @Test
  void numbersThatPythonWritesMayLieBesideTexts() throws IOException {
    Path file =
        lines("a.jsonl", "{\"score\": NaN, \"text\": \"the cat sat\", \"loss\": [-Infinity]}");
    convert(4, file, out);
    assertTokens(4, 1, 2, 3, 6);
  }

  private void assertRefused(int code, String part, Object... rest) throws IOException {
    CommandLineRun run =
        TestSamples.fail(
            code,
            Stream.concat(
                    Stream.of("convert", "--tokens", 4, "--tokenizer", tokenizer), Stream.of(rest))
                .toArray());
    assertThat(run.err()).contains(part).doesNotContain("Source");
    assertThat(out).doesNotExist();
  }

  /// Returns random letters, which GZIP cannot compress to a few bytes.
  private static String random() {
    return new SplittableRandom(1)
        .ints(100_000, 'a', 'z')
        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
        .toString();
  }

  @Test
  void damagedCompressionIsRefused() throws IOException {
    Path whole = gzip(lines("a.jsonl", "{\"text\": \"" + random() + "\"}"));
    byte[] bytes = Files.readAllBytes(whole);
    Path cut = Files.write(temporary.resolve("cut.gz"), Arrays.copyOf(bytes, bytes.length / 2));
    assertRefused(65, "cut.gz: offset ", cut, out);
    Files.write(cut, Arrays.copyOf(bytes, 12));
    assertRefused(65, "cut.gz: offset 0: invalid-gzip: ", cut, out);
  }

  @Test
  void optionsThatDoNotFitAreRefused() throws IOException {
    Path file = lines("a.jsonl", "{\"text\": \"ran\"}");
    assertRefused(64, "does not fit into U16", "--u16", file, out);
    assertRefused(64, "'the cat' is 2", "--eos", "the cat", file, out);
    assertRefused(64, "--stretch", "--stretch", file, out);
    Files.delete(temporary.resolve("tokenizer_config.json"));
    assertRefused(64, "--eos must name", file, out);
    assertThat(TestSamples.fail(64, "convert", "--tokens", 4, file, out).err())
        .contains("missing: --tokenizer");
    assertThat(TestSamples.fail(64, "convert", file, file, out).err()).contains("--tokens");
    assertThat(TestSamples.fail(64, "convert", file, out).err()).contains("missing: both");
    assertThat(TestSamples.fail(64, "convert", "--tokenizer", tokenizer, file, out).err())
        .contains("missing: --tokens)");
    Files.writeString(tokenizer, "{}", StandardCharsets.UTF_8);
    assertRefused(64, "cannot read", "--eos", "the", file, out);
    Files.delete(tokenizer);
    assertRefused(66, "--tokenizer " + tokenizer, file, out);
  }
}
