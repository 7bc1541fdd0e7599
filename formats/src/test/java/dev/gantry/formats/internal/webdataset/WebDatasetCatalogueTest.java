// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.FieldDecoder;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleCatalogueContract;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.formats.webdataset.MemberField;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Every kind of field, in archives of which one has no sample.
class WebDatasetCatalogueTest extends SampleCatalogueContract {
  private static final int[] SAMPLES = {4, 0, 3};

  /// Adds one to each of the bytes that fit the target.
  private static final FieldDecoder ADD_ONE =
      (encoded, target, seed) -> {
        if (encoded.byteSize() == 0) {
          throw new IOException("no bytes");
        }
        target.fill((byte) 0);
        for (long i = 0; i < Math.min(encoded.byteSize(), target.byteSize()); i++) {
          target.set(ValueLayout.JAVA_BYTE, i, (byte) (encoded.get(ValueLayout.JAVA_BYTE, i) + 1));
        }
      };

  private static final List<MemberField> FIELDS =
      List.of(
          MemberField.npy("npy"),
          MemberField.integer("cls"),
          MemberField.padded("txt", 9),
          MemberField.decoded("jpg;png", ADD_ONE, DType.U8, 2, 2),
          MemberField.raw("bin", DType.F32, 3));

  private static final List<String> NAMES =
      List.of("npy", "cls", "txt", "txt_length", "jpg", "bin");

  @TempDir Path folder;

  static byte[] npy(String dtype, String shape, byte[] data) {
    return npy(dtype, shape, data, 0);
  }

  /// @param spaces how many spaces are added to the header
  private static byte[] npy(String dtype, String shape, byte[] data, int spaces) {
    String header =
        "{'descr': '%s', 'fortran_order': False, 'shape': %s, }".formatted(dtype, shape);
    header += " ".repeat(63 - (10 + header.length()) % 64 + spaces) + "\n";
    return ByteBuffer.allocate(10 + header.length() + data.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put("\u0093NUMPY".getBytes(StandardCharsets.ISO_8859_1))
        .put((byte) 1)
        .put((byte) 0)
        .putShort((short) header.length())
        .put(header.getBytes(StandardCharsets.ISO_8859_1))
        .put(data)
        .array();
  }

  private static byte[] bytes(int file, long sample, int count, int salt) {
    byte[] bytes = new byte[count];
    for (int i = 0; i < count; i++) {
      bytes[i] = (byte) (file * 64 + sample * 16 + i + salt);
    }
    return bytes;
  }

  private static String text(int file, long sample) {
    return "text".repeat(2).substring(0, (int) (file + sample + 2));
  }

  private List<TarIndex> indexes(Path... files) {
    return Arrays.stream(files)
        .map(file -> TarIndex.scan(GantrySession.shared(), Location.of(file), (_, _) -> {}))
        .toList();
  }

  private Path archive(int number) {
    Path file = folder.resolve(number + ".tar");
    if (!Files.exists(file)) {
      HandmadeTar tar = new HandmadeTar();
      for (int sample = 0; sample < SAMPLES[number]; sample++) {
        String key = "k" + sample;
        tar.file(key + ".CLS", " " + (number * 10 + sample - 3) + "\n");
        tar.file(key + ".txt", text(number, sample));
        tar.file(key + (sample % 2 == 0 ? ".jpg" : ".png"), bytes(number, sample, 3 + sample, 5));
        tar.file(key + ".npy", npy("<i2", "(2, 2)", bytes(number, sample, 8, 1)));
        tar.file(key + ".bin", bytes(number, sample, 12, 2));
        if (sample == 1) {
          tar.file(key + ".other", "passed over");
        }
      }
      tar.write(file);
    }
    return file;
  }

  @Override
  protected SampleCatalogue open() {
    return WebDatasetCatalogue.of(
        GantrySession.shared(), indexes(archive(0), archive(1), archive(2)), FIELDS, NAMES);
  }

  @Override
  protected byte[] value(String field, int file, long sample) {
    return switch (field) {
      case "npy" -> bytes(file, sample, 8, 1);
      case "bin" -> bytes(file, sample, 12, 2);
      case "cls" -> number(file * 10 + sample - 3);
      case "txt" -> Arrays.copyOf(text(file, sample).getBytes(StandardCharsets.UTF_8), 9);
      case "txt_length" -> number(text(file, sample).length());
      case "jpg" -> Arrays.copyOf(bytes(file, sample, Math.min(4, 3 + (int) sample), 6), 4);
      default -> throw new IllegalArgumentException(field);
    };
  }

  private static byte[] number(long value) {
    return ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
  }

  private void refuses(HandmadeTar tar, MemberField field, String... words) {
    List<TarIndex> indexes = indexes(tar.write(folder.resolve("x.tar")));
    assertThatThrownBy(() ->
            WebDatasetCatalogue.of(
                GantrySession.shared(), indexes, List.of(field), List.of(field.name())))
        .isInstanceOf(MisuseException.class)
        .message()
        .contains(words);
  }

  private static HandmadeTar two(String field, byte[] first, byte[] second) {
    return new HandmadeTar().file("a." + field, first).file("b." + field, second).file("b.x", "");
  }

  @Test
  void samplesThatDoNotFitAreNamed() {
    byte[] three = {1, 2, 3};
    byte[] four = {1, 2, 3, 4};
    refuses(two("bin", three, four), MemberField.raw("bin", DType.U8, 3), "'bin'", "sample 1", "4");
    refuses(two("txt", three, four), MemberField.padded("txt", 3), "sample 1", "more than 3");
    refuses(
        two("cls", "7".getBytes(StandardCharsets.UTF_8), four),
        MemberField.integer("cls"),
        "sample 1",
        "not an integer");
    refuses(two("cls", three, four), MemberField.integer("x"), "sample 0", "no such member", "cls");
    refuses(
        two("npy", npy("<i2", "(2,)", four), npy("<u2", "(2,)", four)),
        MemberField.npy("npy"),
        "sample 1",
        "dtype, shape or order");
    refuses(
        two("npy", npy(">i2", "(2,)", four), npy(">i2", "(2,)", four)),
        MemberField.npy("npy"),
        "little endian");
    // Headers of this length are not compared, so the shapes could differ.
    refuses(
        two("npy", npy("<i2", "(2,)", four, 65_410), npy("<i2", "(2,1)", four, 65_410)),
        MemberField.npy("npy"),
        "header is too long to be compared");
    refuses(new HandmadeTar(), MemberField.npy("npy"), "no samples in [");
  }

  @Test
  void compressedArchivesHaveNoIndex() {
    Path file =
        HandmadeTar.write(
            folder.resolve("a.tar.gz"),
            HandmadeTar.gzip(new HandmadeTar().file("a.x", "").bytes()));
    assertThatThrownBy(() -> indexes(file))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("decompress");
  }

  @Test
  void aValueThatCannotBeDecodedIsNamed() {
    MemberField field = MemberField.decoded("jpg", ADD_ONE, DType.U8, 2);
    Path file = new HandmadeTar().file("a.jpg", "").write(folder.resolve("a.tar"));
    try (SampleCatalogue catalogue =
            WebDatasetCatalogue.of(
                GantrySession.shared(), indexes(file), List.of(field), List.of("jpg"));
        Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(2);
      assertThatThrownBy(() -> catalogue.write(0, new SampleRun(0, 0, 1), target, 0))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("offset 512: undecodable: field 'jpg': no bytes");
    }
  }

  @Test
  void seedsDifferAmongSamplesAndEpochsAndAreTheSameAgain() {
    FieldDecoder seeds = (_, target, seed) -> target.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, seed);
    MemberField field = MemberField.decoded("bin", seeds, DType.I64);
    try (SampleCatalogue catalogue =
            WebDatasetCatalogue.of(
                GantrySession.shared(),
                indexes(archive(0), archive(2)),
                List.of(field),
                List.of("bin"));
        Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(Long.BYTES * 20, Long.BYTES);
      for (int time = 0; time < 2; time++) {
        catalogue.write(0, new SampleRun(0, 0, 4), 0, target, 0);
        catalogue.write(0, new SampleRun(1, 0, 3), 0, target, 4 * Long.BYTES);
        catalogue.write(0, new SampleRun(1, 0, 3), 1, target, 7 * Long.BYTES);
        if (time == 0) {
          MemorySegment.copy(target, 0, target, 10 * Long.BYTES, 10 * Long.BYTES);
        }
      }
      long[] all = target.toArray(ValueLayout.JAVA_LONG);
      assertThat(Arrays.copyOf(all, 10)).doesNotHaveDuplicates();
      assertThat(Arrays.copyOf(all, 10)).isEqualTo(Arrays.copyOfRange(all, 10, 20));
    }
  }
}
