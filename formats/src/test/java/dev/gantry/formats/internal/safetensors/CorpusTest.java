// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Gantry's verdict on each corpus file is the reference implementation's, with a reason.
@Tag("jdk-files")
class CorpusTest {
  private static final Path CORPUS = Path.of("src/test/resources/corpus/safetensors");

  /// The reference implementation keeps the last of two tensors with one name; the format forbids
  /// equal names.
  private static final String REJECTED_BY_US_ONLY = "duplicate-tensor-name.safetensors";

  static Stream<Map.Entry<String, Verdict>> valid() throws IOException {
    return Verdict.readAll(CORPUS.resolve("expected.json")).entrySet().stream()
        .filter(entry -> entry.getValue().valid() && !entry.getKey().equals(REJECTED_BY_US_ONLY));
  }

  @ParameterizedTest
  @MethodSource("valid")
  void aValidFileIsReadAsTheReferenceReadsIt(Map.Entry<String, Verdict> expected)
      throws IOException, NoSuchAlgorithmException {
    Path file = CORPUS.resolve(expected.getKey());
    Verdict verdict = expected.getValue();
    SafetensorsHeader header = SafetensorsHeader.read(GantrySession.shared(), file);
    Map<String, String> sha256 = new HashMap<>();
    for (StoredTensor tensor : header.tensors().values()) {
      sha256.put(tensor.name(), digest(tensor.extent()));
    }
    assertThat(sha256).isEqualTo(verdict.sha256());
    assertThat(header.tensors())
        .allSatisfy((name, tensor) -> {
          assertThat(tensor.name()).isEqualTo(name);
          assertThat(tensor.dtype().name()).isEqualTo(verdict.dtypes().get(name));
          assertThat(LongStream.of(tensor.shape().toArray()).boxed())
              .isEqualTo(verdict.shapes().get(name));
        });
    assertThat(header.metadata()).containsExactlyInAnyOrderEntriesOf(verdict.metadata());
    assertThat(header.tensors().values().stream().map(tensor -> tensor.extent().offset()))
        .isSorted();
    assertThat(header.fileLength()).isEqualTo(Files.size(file));
  }

  @ParameterizedTest(name = "{0}: {1} at {2}")
  @CsvSource({
    "alias, overlap, 115",
    "bom, invalid-json, 8",
    "deep-nesting, nesting-too-deep, 139",
    "dimension-over-u64, dimension-too-large, 36",
    "duplicate-dtype, duplicate-field, 28",
    "duplicate-metadata, duplicate-metadata, 34",
    "duplicate-tensor-name, duplicate-tensor, 61",
    "empty-file, empty-file, 0",
    "end-before-start, end-before-start, 55",
    "fractional-dimension, fractional-dimension, 37",
    "hole-at-start, hole, 63",
    "hole-in-middle, hole, 125",
    "json-array, not-an-object, 8",
    "json-null, not-an-object, 8",
    "length-max-u64, header-too-large, 0",
    "length-minus-nine, header-too-large, 0",
    "length-over-100MB, header-too-large, 0",
    "length-past-end, header-past-end, 0",
    "length-zero, header-empty, 0",
    "lone-surrogate, lone-surrogate, 9",
    "lower-case-dtype, unknown-dtype, 22",
    "metadata-is-list, invalid-metadata, 24",
    "metadata-not-string, metadata-not-a-string, 29",
    "missing-dtype, missing-dtype, 13",
    "missing-offsets, missing-data-offsets, 13",
    "missing-shape, missing-shape, 13",
    "nan-literal, invalid-json, 39",
    "negative-dimension, negative-dimension, 37",
    "negative-offset, negative-offset, 56",
    "not-json, invalid-json, 11",
    "not-utf8, invalid-utf8, 10",
    "nul-padding, trailing-characters, 62",
    "offset-huge, shape-overflow, 13",
    "offset-past-end, data-past-end, 66",
    "one-offset, offsets-not-a-pair, 55",
    "overlap, overlap, 120",
    "raw-control-character, invalid-json, 11",
    "seven-bytes, header-too-small, 0",
    "shape-overflows, shape-overflow, 13",
    "shape-overflows-before-zero, shape-overflow, 13",
    "size-does-not-match-shape, size-mismatch, 13",
    "string-dimension, invalid-dimension, 37",
    "sub-byte-not-whole, not-whole-bytes, 13",
    "tensor-is-null, tensor-not-an-object, 13",
    "three-offsets, offsets-not-a-pair, 55",
    "trailing-byte, trailing-bytes, 70",
    "trailing-comma, invalid-json, 62",
    "truncated-by-one, data-past-end, 69",
    "two-objects, trailing-characters, 62",
    "unclosed, unexpected-end, 61",
    "unknown-dtype, unknown-dtype, 22",
  })
  void anInvalidFileIsRefusedForItsOwnReason(String name, String kind, long offset) {
    Path file = CORPUS.resolve(name + ".safetensors");
    MalformedFileException refusal =
        catchThrowableOfType(
            MalformedFileException.class,
            () -> SafetensorsHeader.read(GantrySession.shared(), file));
    assertThat(refusal).isNotNull();
    assertThat(refusal.kind()).isEqualTo(kind);
    assertThat(refusal.offset()).isEqualTo(offset);
    assertThat(refusal.file()).isEqualTo(Location.of(file));
    assertThat(refusal.getMessage()).contains(file.toString(), kind).hasLineCount(1);
  }

  @Test
  void everyInvalidFileOfTheCorpusIsNamedAbove() throws IOException, NoSuchMethodException {
    CsvSource table =
        CorpusTest.class
            .getDeclaredMethod(
                "anInvalidFileIsRefusedForItsOwnReason", String.class, String.class, long.class)
            .getAnnotation(CsvSource.class);
    assertThat(
            Stream.of(table.value())
                .map(row -> row.substring(0, row.indexOf(',')) + ".safetensors"))
        .containsExactlyInAnyOrderElementsOf(
            Verdict.readAll(CORPUS.resolve("expected.json")).entrySet().stream()
                .filter(e -> !e.getValue().valid() || e.getKey().equals(REJECTED_BY_US_ONLY))
                .map(Map.Entry::getKey)
                .collect(Collectors.toSet()));
  }

  @Test
  void aFileWrittenByDjlIsRead() {
    SafetensorsHeader header =
        SafetensorsHeader.read(
            GantrySession.shared(), CORPUS.resolve("written-by-djl.safetensors"));
    assertThat(header.tensors().values())
        .extracting(tensor -> tensor.name() + " " + tensor.dtype() + " " + tensor.shape())
        .containsExactly("attention I8 [2, 3]", "embedding I8 [2, 2]");
  }

  private static String digest(Extent extent) throws IOException, NoSuchAlgorithmException {
    byte[] bytes = new byte[Math.toIntExact(extent.length())];
    try (RandomAccessFile file = new RandomAccessFile(extent.file().path().toFile(), "r")) {
      file.seek(extent.offset());
      file.readFully(bytes);
    }
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
  }
}
