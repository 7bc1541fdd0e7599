// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.formats.internal.images.ImageDecoder.Options;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Pictures are decoded to the same bits as Pillow's, by the JDK and, if installed, by
/// libturbojpeg; damaged pictures are refused. `make_images.py` made the pictures.
class ImageCorpusTest {
  static final Path CORPUS = Path.of("src/test/resources/corpus/images");

  /// Pillow's verdict on a picture after an operation: the SHA-256 of the result, or the reason of
  /// a refusal.
  record Verdict(String file, String operation, String result, boolean turbo) {}

  static Stream<Verdict> verdicts() throws IOException {
    List<String> lines = Files.readAllLines(CORPUS.resolve("expected.txt"));
    return Stream.of(false, true)
        .filter(turbo -> !turbo || TurboJpeg.loaded().isPresent())
        .flatMap(turbo ->
            lines.stream()
                .map(line -> line.split("\t"))
                .map(parts -> new Verdict(parts[0], parts[1], parts[2], turbo)));
  }

  static Stream<Verdict> accepted() throws IOException {
    return verdicts().filter(verdict -> !verdict.operation.equals("refused"));
  }

  static Stream<Verdict> refused() throws IOException {
    return verdicts().filter(verdict -> verdict.operation.equals("refused"));
  }

  @ParameterizedTest
  @MethodSource("accepted")
  void aPictureBecomesWhatPillowMakesOfIt(Verdict verdict) throws IOException {
    Options options =
        switch (verdict.operation) {
          case "pixels" -> {
            ImageHeader header = header(verdict);
            yield plain(header.height(), header.width());
          }
          case "stretch" -> plain(24, 32);
          case "bicubic" -> plain(24, 32).withKernel(Kernel.BICUBIC);
          case "upright" -> plain(24, 32).withOriented(true);
          case "centre" -> plain(32, 32).withCrop(new Crop.Window(40, false));
          default -> throw new IllegalStateException(verdict.operation);
        };
    assertThat(sha256(decode(verdict, options))).isEqualTo(verdict.result);
  }

  @ParameterizedTest
  @MethodSource("refused")
  void aDamagedPictureIsRefusedWithItsFault(Verdict verdict) {
    assertThatThrownBy(() -> decode(verdict, plain(32, 32)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining(verdict.result);
  }

  /// Returns options that stretch a picture to a size without rotating it.
  static Options plain(int height, int width) {
    return new Options(
        height, width, new Crop.Stretched(), 0, Kernel.BILINEAR, false, false, false, 1 << 26);
  }

  private static ImageHeader header(Verdict verdict) throws IOException {
    byte[] bytes = Files.readAllBytes(CORPUS.resolve(verdict.file));
    return ImageHeader.of(MemorySegment.ofArray(bytes), Long.MAX_VALUE);
  }

  private static byte[] decode(Verdict verdict, Options options) throws IOException {
    byte[] bytes = Files.readAllBytes(CORPUS.resolve(verdict.file));
    return decode(bytes, options, verdict.turbo, 7);
  }

  static byte[] decode(byte[] bytes, Options options, boolean turbo, long seed) throws IOException {
    ImageDecoder decoder = new ImageDecoder(options, turbo ? TurboJpeg.loaded() : Optional.empty());
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment encoded = arena.allocate(Math.max(1, bytes.length)).asSlice(0, bytes.length);
      encoded.copyFrom(MemorySegment.ofArray(bytes));
      MemorySegment target = arena.allocate(3L * options.height() * options.width());
      decoder.decode(encoded, target, seed);
      return target.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
