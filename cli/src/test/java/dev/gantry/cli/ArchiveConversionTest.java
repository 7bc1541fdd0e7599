// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.io.ByteArrayOutputStream;
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
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// `convert` of WebDataset archives.
@ExtendWith(NoLeaks.class)
class ArchiveConversionTest {
  private static final Path PICTURES = Path.of("../formats/src/test/resources/corpus/images");

  @TempDir private Path temporary;

  /// Writes an archive.
  ///
  /// @param members the names and data of the members, alternating
  private Path archive(String name, Object... members) throws IOException {
    Path file = temporary.resolve(name);
    try (OutputStream out = Files.newOutputStream(file);
        OutputStream packed = name.endsWith("gz") ? new GZIPOutputStream(out) : out;
        TarArchiveOutputStream tar = new TarArchiveOutputStream(packed)) {
      for (int i = 0; i < members.length; i += 2) {
        byte[] data =
            members[i + 1] instanceof byte[] bytes
                ? bytes
                : members[i + 1].toString().getBytes(StandardCharsets.UTF_8);
        TarArchiveEntry entry = new TarArchiveEntry(members[i].toString());
        entry.setSize(data.length);
        tar.putArchiveEntry(entry);
        tar.write(data);
        tar.closeArchiveEntry();
      }
    }
    return file;
  }

  private static byte[] picture(String name) throws IOException {
    return Files.readAllBytes(PICTURES.resolve(name));
  }

  private static void field(Path out, String name, String dtype, List<?> shape, byte[] data) {
    assertThat((Object) TestSamples.fieldsOf(out).get(name))
        .isEqualTo(Map.of("dtype", dtype, "shape", shape, "sha256", TestSamples.sha256(data)));
  }

  private static byte[] longs(long... values) {
    ByteBuffer bytes =
        ByteBuffer.allocate(values.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    Arrays.stream(values).forEach(bytes::putLong);
    return bytes.array();
  }

  @Test
  void picturesAreDecodedAndNumbersKept() throws IOException {
    // A folder of the same pictures must give the same images.
    Path folder = temporary.resolve("photos");
    Files.createDirectories(folder.resolve("all"));
    Files.write(folder.resolve("all").resolve("a.png"), picture("rgb.png"));
    Files.write(folder.resolve("all").resolve("b.jpg"), picture("rgb-444.jpg"));
    Path expected = temporary.resolve("expected");
    TestSamples.run("convert", "--size", "24x32", folder, expected);
    Object images = ((Map<?, ?>) TestSamples.fieldsOf(expected).get("image")).get("sha256");

    Object[] members = {
      "a.png",
      picture("rgb.png"),
      "a.cls",
      "7",
      "a.bin",
      new byte[] {1, 2, 3},
      "b.cls",
      "-1",
      "b.jpg",
      picture("rgb-444.jpg"),
      "b.bin",
      new byte[] {4, 5, 6}
    };
    for (String name : List.of("x.tar", "x.tar.gz")) {
      Path out = temporary.resolve("out-" + name);
      TestSamples.run("convert", "--size", "24x32", archive(name, members), out);
      assertThat(TestSamples.fieldsOf(out).keySet().stream().map(Object::toString))
          .containsExactlyInAnyOrder("png", "cls", "bin");
      assertThat((Object) TestSamples.fieldsOf(out).get("png"))
          .isEqualTo(Map.of("dtype", "U8", "shape", List.of(24, 32, 3), "sha256", images));
      field(out, "cls", "I64", List.of(), longs(7, -1));
      field(out, "bin", "U8", List.of(3), new byte[] {1, 2, 3, 4, 5, 6});
    }
  }

  @Test
  void twoPicturesOfEachSampleAreTwoFields() throws IOException {
    Path tar = archive("x.tar", "a.jpg", picture("rgb-444.jpg"), "a.png", picture("grey.png"));
    Path out = temporary.resolve("out");
    TestSamples.run("convert", "--size", "24x32", tar, out);
    assertThat(TestSamples.fieldsOf(out).keySet().stream().map(Object::toString))
        .containsExactlyInAnyOrder("jpg", "png");
  }

  @Test
  void aFolderOfArchivesIsOneSet() throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int i = 0; i < 3; i++) {
      archive("t-" + i + ".tar", i + "a.x", "x" + i, i + "b.x", "y" + i);
      all.writeBytes(("x" + i + "y" + i).getBytes(StandardCharsets.UTF_8));
    }
    Path out = temporary.resolve("out");
    TestSamples.run("convert", "--samples-per-shard", 4, temporary, out);
    Path two = temporary.resolve("two");
    TestSamples.run("convert", temporary.resolve("t-0.tar"), temporary.resolve("t-2.tar"), two);
    field(two, "x", "U8", List.of(2), "x0y0x2y2".getBytes(StandardCharsets.UTF_8));
    field(out, "x", "U8", List.of(2), all.toByteArray());
    assertThat(TestSamples.names(out))
        .contains("shards.json", "shard-00000.bin", "shard-00001.bin")
        .doesNotContain("shard-00002.bin");
  }

  @Test
  void membersOfDifferentLengthsArePaddedOrLeftOut() throws IOException {
    Path tar = archive("x.tar", "a.txt", "long", "a.cls", "1", "b.txt", "ab", "b.cls", "2");
    Path out = temporary.resolve("out");
    assertThat(TestSamples.fail(64, "convert", tar, out).err())
        .contains("'txt'", "--pad", "--columns");
    TestSamples.run("convert", "--pad", tar, out);
    field(out, "txt", "U8", List.of(4), "longab\0\0".getBytes(StandardCharsets.UTF_8));
    field(out, "txt_length", "I64", List.of(), longs(4, 2));
    Path labels = temporary.resolve("labels");
    TestSamples.run("convert", "--columns", "cls", tar, labels);
    assertThat(TestSamples.fieldsOf(labels).keySet().stream().map(Object::toString))
        .containsExactly("cls");
    assertThat(TestSamples.fail(64, "convert", "--columns", "jpg", tar, labels).err())
        .contains("no member has the extension 'jpg'");
    assertThat(TestSamples.fail(64, "convert", "--size", 8, "--pad", tar, labels).err())
        .contains("--size applies only to", "[txt, cls]");
    Path none = archive("none.tar");
    assertThat(TestSamples.fail(64, "convert", "--size", 8, none, labels).err())
        .contains("no samples in [" + none + "]");
  }

  @Test
  void damageIsNamedAndNothingStays() throws IOException {
    Path out = temporary.resolve("out");
    Path tar = archive("x.tar", "a.jpg", picture("truncated.jpg"));
    assertThat(TestSamples.fail(64, "convert", tar, out).err()).contains("--size");
    CommandLineRun run = TestSamples.fail(65, "convert", "--size", 16, tar, out);
    assertThat(run.err())
        .startsWith("gantry: " + tar + ": offset 512: undecodable: field 'jpg': ")
        .hasLineCount(1);
    Path cut = temporary.resolve("cut.tar");
    Files.write(cut, Arrays.copyOf(Files.readAllBytes(tar), 700));
    assertThat(TestSamples.fail(65, "convert", "--size", 16, cut, out).err())
        .startsWith("gantry: " + cut + ": offset ");
    assertThat(TestSamples.names(temporary)).containsExactlyInAnyOrder("x.tar", "cut.tar");
  }
}
