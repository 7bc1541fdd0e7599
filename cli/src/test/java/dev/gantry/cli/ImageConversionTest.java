// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// `convert` of folders of pictures. The tests of `formats` compare single pictures with Pillow's
/// results.
@ExtendWith(NoLeaks.class)
class ImageConversionTest {
  private static final Path PICTURES = Path.of("../formats/src/test/resources/corpus/images");

  @TempDir private Path temporary;

  private Path photos(String... names) throws IOException {
    Path root = temporary.resolve("photos");
    for (String name : names) {
      Path copy = root.resolve(name);
      Files.createDirectories(copy.getParent());
      Files.copy(PICTURES.resolve(copy.getFileName()), copy);
    }
    return root;
  }

  private static String verdict(String name, String operation) throws IOException {
    try (Stream<String> lines = Files.lines(PICTURES.resolve("expected.txt"))) {
      return lines
          .map(line -> line.split("\t"))
          .filter(parts -> parts[0].equals(name) && parts[1].equals(operation))
          .map(parts -> parts[2])
          .findFirst()
          .orElseThrow();
    }
  }

  @Test
  void picturesBecomeWhatPillowMakesOfThem() throws IOException {
    Path out = temporary.resolve("out");
    // Without --stretch, this picture would be cropped.
    TestSamples.run("convert", "--size", "24x32", "--stretch", photos("cats/large.jpg"), out);
    assertThat((Object) TestSamples.fieldsOf(out).get("image"))
        .isEqualTo(
            Map.of(
                "dtype", "U8",
                "shape", List.of(24, 32, 3),
                "sha256", verdict("large.jpg", "stretch")));
  }

  @Test
  void samplesHaveTheOrderOfTheFilesAndLabelsThatOfTheClasses() throws IOException {
    Path photos =
        photos(
            "dogs/rgb.png",
            "cats/z/grey.png",
            "cats/rgb.png",
            "cats/grey.jpg",
            "ants/dot.png",
            ".hidden/rgb.png");
    Files.writeString(photos.resolve("cats").resolve("notes.txt"), "not a picture");
    Files.writeString(photos.resolve("cats").resolve("._rgb.png"), "not a picture");
    Path out = temporary.resolve("out");
    TestSamples.run("convert", "--size", 16, "--samples-per-shard", 2, photos, out);
    ShardSet set = ShardSet.open(GantrySession.shared(), Location.of(out));
    assertThat(set.metadata()).containsEntry("classes", "[\"ants\",\"cats\",\"dogs\"]");
    assertThat(set.shards()).hasSize(3);
    ByteBuffer labels = ByteBuffer.allocate(40).order(ByteOrder.LITTLE_ENDIAN);
    for (long label : new long[] {0, 1, 1, 1, 2}) {
      labels.putLong(label);
    }
    assertThat((Object) TestSamples.fieldsOf(out).get("label"))
        .isEqualTo(
            Map.of(
                "dtype", "I64",
                "shape", List.of(),
                "sha256", TestSamples.sha256(labels.array())));
  }

  @Test
  void aDamagedPictureIsNamedAndNothingStays() throws IOException {
    Path photos = photos("cats/rgb.png", "dogs/truncated.jpg", "dogs/rgb.png");
    CommandLineRun run =
        TestSamples.fail(65, "convert", "--size", 16, photos, temporary.resolve("out"));
    assertThat(run.err())
        .startsWith(
            "gantry: "
                + photos.resolve("dogs/truncated.jpg")
                + ": offset 0: invalid-image: the JPEG is cut off after ")
        .hasLineCount(1);
    assertThat(TestSamples.names(temporary)).containsExactly("photos");
  }

  @Test
  void foldersThatAreNoneAreRefused() throws IOException {
    Path out = temporary.resolve("out");
    Path photos = photos("cats/rgb.png", "dogs/grey.png");
    assertThat(TestSamples.fail(64, "convert", photos, out).err()).contains("--size");
    assertThat(TestSamples.fail(64, "convert", "--size", "0", photos, out).err())
        .contains("--size");
    assertThat(TestSamples.fail(64, "convert", "--size", 8, photos, photos.resolve("out")).err())
        .contains("OUT must not lie in IN");
    Path link = Files.createSymbolicLink(photos.resolve("dogs/link.png"), Path.of("nowhere"));
    assertThat(TestSamples.fail(65, "convert", "--size", 8, photos, out).err())
        .contains("link.png: offset 0: invalid-image-folder: this is not a file, or a link");
    Files.delete(link);
    Path circle = Files.createSymbolicLink(photos.resolve("dogs/again"), Path.of(".."));
    assertThat(TestSamples.fail(65, "convert", "--size", 8, photos, out).err())
        .contains(
            "again/dogs: offset 0: invalid-image-folder: this is a link to a folder that holds")
        .hasLineCount(1);
    Files.delete(circle);
    Path self = Files.createSymbolicLink(temporary.resolve("self"), Path.of("self"));
    assertThat(TestSamples.fail(66, "convert", self, out).err()).contains("ELOOP");
    Files.delete(photos.resolve("dogs/grey.png"));
    assertThat(TestSamples.fail(65, "convert", "--size", 8, photos, out).err())
        .contains("dogs: offset 0: invalid-image-folder: the class has no picture");
    Files.writeString(photos.resolve("dogs/a.webp"), "");
    assertThat(TestSamples.fail(65, "convert", "--size", 8, photos, out).err())
        .contains("a.webp: offset 0: invalid-image-folder: only JPEG and PNG are decoded");
    assertThat(TestSamples.fail(65, "convert", "--size", 8, photos.resolve("cats"), out).err())
        .contains("each class needs one");
    Path beside = Files.move(photos.resolve("dogs/a.webp"), photos.resolve("a.webp"));
    assertThat(TestSamples.fail(65, "convert", "--size", 8, photos, out).err())
        .contains(beside + ": offset 0: invalid-image-folder: this picture must lie in the folder");
  }
}
