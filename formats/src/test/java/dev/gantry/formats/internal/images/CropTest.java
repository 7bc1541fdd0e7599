// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.internal.images.Sampling.Region;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.util.HashSet;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CropTest {
  private static final Crop.RandomResized USUAL = new Crop.RandomResized(0.08, 1, 0.75, 4.0 / 3);

  @Property
  void aRandomPartLiesInThePicture(
      @ForAll @IntRange(min = 1, max = 5000) int width,
      @ForAll @IntRange(min = 1, max = 5000) int height,
      @ForAll long seed) {
    Region region = USUAL.sampling(width, height, 224, 224, 0, seed).region();
    assertThat(region.x()).isBetween(0, width - region.width());
    assertThat(region.y()).isBetween(0, height - region.height());
    assertThat(region.width()).isPositive();
    assertThat(region.height()).isPositive();
    if (width > 100 && height > 100 && width < 1.3 * height && height < 1.3 * width) {
      assertThat((double) region.width() / region.height()).isBetween(0.7, 1.4);
      assertThat((double) region.width() * region.height() / width / height).isBetween(0.07, 1.0);
    }
  }

  @Property
  void aWindowLiesInTheResizedPicture(
      @ForAll @IntRange(min = 1, max = 5000) int width,
      @ForAll @IntRange(min = 1, max = 5000) int height,
      @ForAll boolean random,
      @ForAll boolean covering,
      @ForAll long seed) {
    Sampling sampling =
        new Crop.Window(covering ? 0 : 64, random).sampling(width, height, 48, 32, 0, seed);
    assertThat(sampling.left()).isBetween(0, sampling.width() - 48);
    assertThat(sampling.top()).isBetween(0, sampling.height() - 32);
    if (covering) {
      assertThat(sampling.width() == 48 || sampling.height() == 32).isTrue();
    }
  }

  /// The numbers must not change, because a training that is resumed after an update of Gantry
  /// would get other crops.
  @ParameterizedTest
  @CsvSource({"1, 29, 19, 434, 331", "2, 84, 2, 390, 369", "77, 35, 50, 321, 312"})
  void aSeedGivesTheSameCropForEver(long seed, int x, int y, int width, int height) {
    Sampling sampling = USUAL.sampling(500, 375, 224, 224, 0.5, seed);
    assertThat(sampling.region()).isEqualTo(new Region(x, y, width, height));
  }

  @Test
  void aboutHalfOfAllPicturesAreMirroredAndSeedsDiffer() {
    int mirrored = 0;
    Set<Region> regions = new HashSet<>();
    for (int seed = 0; seed < 1000; seed++) {
      Sampling sampling = USUAL.sampling(500, 375, 224, 224, 0.5, seed);
      mirrored += sampling.mirrored() ? 1 : 0;
      regions.add(sampling.region());
    }
    assertThat(mirrored).isBetween(430, 570);
    assertThat(regions.size()).isGreaterThan(950);
  }

  @Test
  void aMirroredPictureIsThePictureFromRightToLeft() throws IOException {
    byte[] picture = Files.readAllBytes(ImageCorpusTest.CORPUS.resolve("rgb.png"));
    byte[] plain = ImageCorpusTest.decode(picture, ImageCorpusTest.plain(8, 8), false, 0);
    byte[] mirrored =
        ImageCorpusTest.decode(picture, ImageCorpusTest.plain(8, 8).withFlip(1), false, 0);
    for (int row = 0; row < 8; row++) {
      for (int column = 0; column < 8; column++) {
        for (int c = 0; c < 3; c++) {
          assertThat(mirrored[(row * 8 + column) * 3 + c])
              .isEqualTo(plain[(row * 8 + 7 - column) * 3 + c]);
        }
      }
    }
  }

  /// The pixels of a picture that is decoded at half its size are nearly those of the whole
  /// picture.
  @Test
  void aReducedPictureLooksTheSame() throws IOException {
    byte[] picture = Files.readAllBytes(ImageCorpusTest.CORPUS.resolve("large.jpg"));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment encoded = arena.allocate(picture.length);
      encoded.copyFrom(MemorySegment.ofArray(picture));
      ImageDecoding options = ImageDecoding.of(64, 64).randomResizedCrop(0.5, 1, 0.75, 1.5);
      MemorySegment reduced = arena.allocate(64 * 64 * 3);
      MemorySegment whole = arena.allocate(64 * 64 * 3);
      options.decode(encoded, reduced, 3);
      options.allPixels().decode(encoded, whole, 3);
      long difference = 0;
      for (int i = 0; i < 64 * 64 * 3; i++) {
        difference +=
            Math.abs(
                (reduced.get(ValueLayout.JAVA_BYTE, i) & 0xFF)
                    - (whole.get(ValueLayout.JAVA_BYTE, i) & 0xFF));
      }
      assertThat(difference / (64.0 * 64 * 3)).isLessThan(4);
    }
  }

  @Test
  void optionsThatMakeNoSenseAreRefused() {
    ImageDecoding decoding = ImageDecoding.of(224, 224);
    assertThatThrownBy(() -> ImageDecoding.of(0, 224)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> decoding.resizeShorterSide(200)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> decoding.randomResizedCrop(0, 1, 1, 1))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("0.0 to 1.0");
    assertThatThrownBy(() -> decoding.randomResizedCrop(0.5, 1, 2, 1))
        .isInstanceOf(MisuseException.class);
  }

  @Test
  void aTargetThatCannotTakeThePictureIsRefused() throws IOException {
    ImageDecoding decoding = ImageDecoding.of(8, 8);
    MemorySegment picture =
        MemorySegment.ofArray(Files.readAllBytes(ImageCorpusTest.CORPUS.resolve("rgb.png")));
    MemorySegment whole = MemorySegment.ofArray(new byte[192]);
    decoding.decode(picture, whole, 0);
    assertThatThrownBy(() -> decoding.decode(picture, whole.asSlice(1), 0))
        .isInstanceOf(MisuseException.class)
        .hasMessage("target must have 192 bytes, 3 for each pixel, and be writable (has 191)");
    assertThatThrownBy(() -> decoding.decode(picture, whole.asReadOnly(), 0))
        .isInstanceOf(MisuseException.class)
        .hasMessageEndingWith("(has 192, read-only)");
    assertThatThrownBy(() -> decoding.decode(picture, null, 0))
        .isInstanceOf(MisuseException.class)
        .hasMessage("target must be given (was null)");
  }

  @Test
  void aPictureOfTooManyPixelsIsRefused() throws IOException {
    byte[] picture = Files.readAllBytes(ImageCorpusTest.CORPUS.resolve("rgb.png"));
    assertThatThrownBy(() ->
            ImageCorpusTest.decode(
                picture, ImageCorpusTest.plain(8, 8).withMaxPixels(1000), false, 0))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("61 x 47 pixels");
  }
}
