// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormatContract;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GgufFormatTest {
  @Nested
  class UsualAlignment extends OneFile {
    UsualAlignment() {
      super(32);
    }
  }

  @Nested
  class WideAlignment extends OneFile {
    WideAlignment() {
      super(4096);
    }
  }

  abstract static class OneFile extends WeightsFormatContract {
    private static final Map<DType, Integer> TYPES =
        Map.of(DType.F32, 0, DType.I8, 24, DType.I16, 25, DType.I64, 27, DType.F64, 28);

    private final int alignment;

    OneFile(int alignment) {
      this.alignment = alignment;
    }

    @Override
    protected String format() {
      return "GGUF";
    }

    @Override
    protected String variant() {
      return "gguf";
    }

    @Override
    protected String fileName() {
      return "model.gguf";
    }

    /// The tensors have no unsigned bytes, which GGUF lacks.
    @Override
    protected Map<String, Given> tensors() {
      Map<String, Given> tensors = super.tensors();
      tensors.put("flags", given(new Random(5), DType.I8, 7));
      return tensors;
    }

    @Override
    protected void write(Path file, Map<String, Given> tensors) throws IOException {
      HandmadeGguf gguf = new HandmadeGguf(alignment).note("a.text", 8, HandmadeGguf.text("x"));
      tensors.forEach((name, given) ->
          gguf.tensor(
              name, TYPES.get(given.dtype()), given.bytes(), reversed(given.shape().toArray())));
      Files.write(file, gguf.bytes());
    }
  }

  private static long[] reversed(long... shape) {
    long[] reversed = new long[shape.length];
    for (int i = 0; i < shape.length; i++) {
      reversed[i] = shape[shape.length - 1 - i];
    }
    return reversed;
  }

  @TempDir Path folder;

  private WeightsCatalogue open(String name, byte[] bytes) throws IOException {
    return open(Files.write(folder.resolve(name), bytes));
  }

  private static WeightsCatalogue open(Path path) {
    return WeightsFormats.open(GantrySession.shared(), Location.of(path));
  }

  private String refusal(String name, byte[] bytes) throws IOException {
    Path file = Files.write(folder.resolve(name), bytes);
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> open(file));
    assertThat(fault).as("it is refused").isNotNull();
    assertThat(fault.getMessage()).doesNotContain("\n").startsWith(file.toString());
    return fault.kind();
  }

  @Test
  void notesOfEveryTypeAreMetadata() throws IOException {
    byte[] numbers = HandmadeGguf.joined(HandmadeGguf.number(5, 4), HandmadeGguf.number(2, 8));
    HandmadeGguf gguf =
        new HandmadeGguf()
            .note("u8", 0, HandmadeGguf.number(255, 1))
            .note("i8", 1, HandmadeGguf.number(-1, 1))
            .note("u16", 2, HandmadeGguf.number(65535, 2))
            .note("i16", 3, HandmadeGguf.number(-2, 2))
            .note("u32", 4, HandmadeGguf.number(0xFFFFFFFFL, 4))
            .note("i32", 5, HandmadeGguf.number(-3, 4))
            .note("f32", 6, HandmadeGguf.number(Float.floatToRawIntBits(1e-5f), 4))
            .note("bool", 7, HandmadeGguf.number(1, 1))
            .note("text", 8, HandmadeGguf.text("grüße\n"))
            .note(
                "array",
                9,
                HandmadeGguf.joined(numbers, HandmadeGguf.number(7, 4), HandmadeGguf.number(-8, 4)))
            .note("u64", 10, HandmadeGguf.number(-1, 8))
            .note("i64", 11, HandmadeGguf.number(-4, 8))
            .note("f64", 12, HandmadeGguf.number(Double.doubleToRawLongBits(0.1), 8))
            .note(
                "texts",
                9,
                HandmadeGguf.joined(
                    HandmadeGguf.number(8, 4),
                    HandmadeGguf.number(2, 8),
                    HandmadeGguf.text("a\"b"),
                    HandmadeGguf.text("")))
            .note(
                "arrays",
                9,
                HandmadeGguf.joined(
                    HandmadeGguf.number(9, 4),
                    HandmadeGguf.number(1, 8),
                    HandmadeGguf.number(0, 4),
                    HandmadeGguf.number(1, 8),
                    new byte[] {9}));
    Map<String, String> expected =
        Map.ofEntries(
            Map.entry("u8", "255"),
            Map.entry("i8", "-1"),
            Map.entry("u16", "65535"),
            Map.entry("i16", "-2"),
            Map.entry("u32", "4294967295"),
            Map.entry("i32", "-3"),
            Map.entry("f32", "1.0E-5"),
            Map.entry("bool", "true"),
            Map.entry("text", "grüße\n"),
            Map.entry("array", "[7, -8]"),
            Map.entry("u64", "18446744073709551615"),
            Map.entry("i64", "-4"),
            Map.entry("f64", "0.1"),
            Map.entry("texts", "[\"a\\\"b\", \"\"]"),
            Map.entry("arrays", "[[9]]"));
    for (int version = 2; version <= 3; version++) {
      assertThat(open("notes.gguf", gguf.bytes(version)).metadata()).isEqualTo(expected);
    }
  }

  /// A tokenizer's vocabulary would otherwise fill the output of every command.
  @Test
  void longArraysAreKeptAsTheirStartAndTheirCount() throws IOException {
    byte[][] texts = new byte[100_002][];
    texts[0] = HandmadeGguf.number(8, 4);
    texts[1] = HandmadeGguf.number(100_000, 8);
    for (int i = 2; i < texts.length; i++) {
      texts[i] = HandmadeGguf.text("t" + (i - 2));
    }
    byte[] bytes =
        HandmadeGguf.joined(
            HandmadeGguf.number(4, 4), HandmadeGguf.number(5000, 8), new byte[20_000]);
    WeightsCatalogue weights =
        open(
            "long.gguf",
            new HandmadeGguf()
                .note("tokens", 9, HandmadeGguf.joined(texts))
                .note("zeros", 9, bytes)
                .note("after", 0, new byte[] {3})
                .bytes());
    assertThat(weights.metadata().get("tokens"))
        .isEqualTo("[\"t0\", \"t1\", \"t2\", \"t3\", \"t4\", \"t5\", \"t6\", \"t7\", … of 100000]");
    assertThat(weights.metadata().get("zeros")).isEqualTo("[0, 0, 0, 0, 0, 0, 0, 0, … of 5000]");
    assertThat(weights.metadata().get("after")).isEqualTo("3");
  }

  /// A clone without Git LFS leaves such a pointer.
  @Test
  void aFolderWithAPointerInsteadOfItsFileSaysWhatThatIs() throws IOException {
    Files.writeString(folder.resolve("m.gguf"), "version https://git-lfs.github.com/spec/v1\n");
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(folder)))
        .hasMessageContaining("another-format: not GGUF: the file is a Git LFS pointer");
  }

  @Test
  void faultsAreNamed() throws IOException {
    HandmadeGguf one = new HandmadeGguf().tensor("a", 24, new byte[5], 5);
    assertThat(refusal("v1.gguf", one.bytes(1))).isEqualTo("unknown-version");
    assertThat(refusal("be.gguf", one.bytes(0x03000000))).isEqualTo("big-endian");
    assertThat(refusal("twice.gguf", one.tensor("a", 24, new byte[1], 1).bytes()))
        .isEqualTo("duplicate-tensor");
    assertThat(
            refusal(
                "note.gguf",
                new HandmadeGguf().note("k", 0, new byte[1]).note("k", 1, new byte[1]).bytes()))
        .isEqualTo("duplicate-note");
    assertThat(refusal("type.gguf", new HandmadeGguf().note("k", 13, new byte[1]).bytes()))
        .isEqualTo("unknown-note-type");
    assertThat(refusal("alignment.gguf", new HandmadeGguf(48).bytes()))
        .isEqualTo("invalid-alignment");
    assertThat(
            refusal(
                "overlap.gguf",
                new HandmadeGguf()
                    .info("a", 24, 0, 40)
                    .info("b", 24, 32, 8)
                    .data(new byte[64])
                    .bytes()))
        .isEqualTo("overlap");
    assertThat(refusal("partial.gguf", new HandmadeGguf().tensor("q", 2, new byte[36], 33).bytes()))
        .isEqualTo("partial-block");
    assertThat(
            refusal(
                "utf8.gguf",
                new HandmadeGguf().tensor("q\u00e9", 24, new byte[1], 1).bytes(),
                (byte) 0xC3,
                (byte) 0xFF))
        .isEqualTo("invalid-utf8");
    byte[] deep = {};
    for (int i = 0; i < 100; i++) {
      deep = HandmadeGguf.joined(HandmadeGguf.number(9, 4), HandmadeGguf.number(1, 8), deep);
    }
    assertThat(refusal("deep.gguf", new HandmadeGguf().note("k", 9, deep).bytes()))
        .isEqualTo("nested-too-deep");
    assertThat(
            refusal(
                "string.gguf", new HandmadeGguf().note("k", 8, HandmadeGguf.number(-1, 8)).bytes()))
        .isEqualTo("header-past-end");
  }

  private interface Notes {
    void write(RandomAccessFile file) throws IOException;
  }

  /// Sparse files take no space on the disk, and their notes would take the heap.
  private void assertTooLarge(int count, Notes notes) throws IOException {
    Path file = folder.resolve("notes.gguf");
    try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
      sparse.write(new HandmadeGguf().bytes(), 0, 16);
      sparse.write(HandmadeGguf.number(count, 8));
      notes.write(sparse);
      sparse.setLength(sparse.getFilePointer());
    }
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(file)))
        .hasMessageContaining("header-too-large: its notes and names take more than");
  }

  @Test
  void textsThatTakeTooMuchMemoryAreRefused() throws IOException {
    assertTooLarge(
        100,
        sparse -> {
          for (int i = 0; i < 100; i++) {
            sparse.write(
                HandmadeGguf.joined(
                    HandmadeGguf.text("k" + i),
                    HandmadeGguf.number(8, 4),
                    HandmadeGguf.number(1 << 20, 8)));
            sparse.seek(sparse.getFilePointer() + (1 << 20));
          }
        });
  }

  @Test
  void keysThatTakeTooMuchMemoryAreRefused() throws IOException {
    assertTooLarge(
        2000,
        sparse -> {
          for (int i = 0; i < 2000; i++) {
            sparse.write(
                HandmadeGguf.joined(
                    HandmadeGguf.number(60_000, 8),
                    String.valueOf(1000 + i).getBytes(StandardCharsets.US_ASCII)));
            sparse.seek(sparse.getFilePointer() + 60_000 - 4);
            sparse.write(HandmadeGguf.joined(HandmadeGguf.number(7, 4), new byte[1]));
          }
        });
  }

  @Test
  void arraysThatTakeTooMuchMemoryAreRefused() throws IOException {
    assertTooLarge(
        1,
        sparse -> {
          sparse.write(
              HandmadeGguf.joined(
                  HandmadeGguf.text("k"),
                  HandmadeGguf.number(9, 4),
                  HandmadeGguf.number(9, 4),
                  HandmadeGguf.number(4 << 20, 8)));
          // Each array is empty: zeros are its type and its length.
          sparse.seek(sparse.getFilePointer() + 12 * (4 << 20));
        });
  }

  private String refusal(String name, byte[] bytes, byte from, byte to) throws IOException {
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = bytes[i] == from ? to : bytes[i];
    }
    return refusal(name, bytes);
  }

  /// Returns the file of a number, from 0, of a set whose files have a tensor each; without its tensor.
  private static HandmadeGguf part(int number, int count) {
    return new HandmadeGguf()
        .note("split.no", 2, HandmadeGguf.number(number, 2))
        .note("split.count", 2, HandmadeGguf.number(count, 2))
        .note("split.tensors.count", 5, HandmadeGguf.number(count, 4));
  }

  private void writeSet(int count) throws IOException {
    for (int i = 0; i < count; i++) {
      HandmadeGguf part = part(i, count);
      if (i == 0) {
        var _ = part.note("general.name", 8, HandmadeGguf.text("three"));
      }
      var _ = part.tensor("t" + i, 24, new byte[] {(byte) i}, 1);
      Files.write(folder.resolve("m-0000%d-of-0000%d.gguf".formatted(i + 1, count)), part.bytes());
    }
  }

  @Test
  void theFilesOfASetAreOpenedTogether() throws IOException {
    writeSet(3);
    for (Path path : new Path[] {folder.resolve("m-00002-of-00003.gguf"), folder}) {
      WeightsCatalogue weights = open(path);
      assertThat(weights.tensors().keySet()).containsExactly("t0", "t1", "t2");
      assertThat(weights.files()).hasSize(3);
      assertThat(weights.metadata()).containsEntry("general.name", "three");
      StoredTensor last = weights.tensors().get("t2");
      assertThat(TensorValues.bytes(last)).containsExactly(2);
    }
  }

  @Test
  void aSetThatDoesNotFitTogetherIsRefused() throws IOException {
    writeSet(3);
    Path third = folder.resolve("m-00003-of-00003.gguf");
    Path second = folder.resolve("m-00002-of-00003.gguf");
    byte[] wrong = Files.readAllBytes(second);
    assertThat(refusal(third.getFileName().toString(), wrong)).isEqualTo("wrong-number");
    assertThat(refusal("other.gguf", wrong)).isEqualTo("invalid-name");
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(folder)).kind())
        .isEqualTo("several-files");
  }

  /// The first file says how many tensors all files have.
  @Test
  void aSetThatHasLostATensorIsRefused() throws IOException {
    writeSet(3);
    Path first = folder.resolve("m-00001-of-00003.gguf");
    Path third = folder.resolve("m-00003-of-00003.gguf");
    Files.write(third, part(2, 3).bytes());
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(first)).kind())
        .isEqualTo("missing-tensors");
    Files.write(third, part(2, 3).tensor("t0", 24, new byte[1], 1).bytes());
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(first)).kind())
        .isEqualTo("duplicate-tensor");
    Files.delete(first);
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(folder)).kind())
        .isEqualTo("missing-data-files");
  }

  @Test
  void aTensorWithoutElementsMayLieAnywhere() throws IOException {
    byte[] file =
        new HandmadeGguf()
            .info("all", 24, 0, 64)
            .info("none", 24, 32, 0)
            .data(new byte[64])
            .bytes();
    assertThat(open("empty.gguf", file).tensors().keySet()).containsExactly("all", "none");
  }

  @Test
  void bytesThatCannotBeCountedAreRefused() throws IOException {
    byte[] file = new HandmadeGguf().info("huge", 28, 0, 1L << 61).bytes();
    assertThat(refusal("huge.gguf", file)).isEqualTo("shape-overflow");
  }
}
