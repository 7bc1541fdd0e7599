// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.formats.webdataset.MemberField;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Batches from archives that Commons Compress wrote.
@ExtendWith(NoLeaks.class)
class WebDatasetTest {
  private static final int SAMPLES = 100;

  /// The number of samples in each archive; the last archive has fewer.
  private static final int OF_ARCHIVE = 30;

  @TempDir Path folder;

  private static void add(TarArchiveOutputStream tar, String name, byte[] data) throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name);
    entry.setSize(data.length);
    tar.putArchiveEntry(entry);
    tar.write(data);
    tar.closeArchiveEntry();
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] bin(long sample) {
    return ByteBuffer.allocate(12)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putFloat((float) sample)
        .putFloat((float) -sample)
        .putFloat(1)
        .array();
  }

  /// Writes the archives `train-000.tar` and so on.
  private void write() {
    for (int first = 0; first < SAMPLES; first += OF_ARCHIVE) {
      Path file = folder.resolve(String.format(Locale.ROOT, "train-%03d.tar", first / OF_ARCHIVE));
      try (TarArchiveOutputStream tar = new TarArchiveOutputStream(Files.newOutputStream(file))) {
        for (int i = first; i < Math.min(SAMPLES, first + OF_ARCHIVE); i++) {
          String key = String.format(Locale.ROOT, "images/%06d", i);
          add(tar, key + ".cls", text(Integer.toString(i)));
          add(tar, key + ".txt", text("sample " + i));
          add(tar, key + ".x", new byte[] {(byte) i, (byte) (i + 1)});
          add(tar, key + ".bin", bin(i));
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private WebDataset.Builder dataset(String... names) {
    return WebDataset.builder()
        .setPath(names)
        .addField(MemberField.raw("bin", DType.F32, 3))
        .addField(MemberField.padded("txt", 12))
        .addField(
            MemberField.decoded(
                "jpg;x",
                (encoded, target, _) -> {
                  target.set(ValueLayout.JAVA_BYTE, 0, encoded.get(ValueLayout.JAVA_BYTE, 1));
                  target.set(ValueLayout.JAVA_BYTE, 1, encoded.get(ValueLayout.JAVA_BYTE, 0));
                },
                DType.I8,
                1,
                2))
        .addField(MemberField.integer("cls"))
        .setSampling(16)
        .optPoison(true);
  }

  /// Returns the labels in their order, and checks that all fields of a sample agree with its
  /// label.
  private static List<Long> checkedLabels(Iterable<Batch> batches, int most) {
    List<Long> all = new ArrayList<>();
    for (Batch batch : batches) {
      try (batch) {
        NDList data = batch.getData();
        int size = batch.getSize();
        assertThat(data.get("bin").getShape()).isEqualTo(new Shape(size, 3));
        assertThat(data.get("bin").getDataType()).isEqualTo(DataType.FLOAT32);
        assertThat(data.get("jpg").getShape()).isEqualTo(new Shape(size, 1, 2));
        float[] bin = data.get("bin").toFloatArray();
        byte[] txt = data.get("txt").toByteArray();
        long[] lengths = data.get("txt_length").toLongArray();
        byte[] decoded = data.get("jpg").toByteArray();
        long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
        for (int i = 0; i < size; i++) {
          long label = labels[i];
          assertThat(Arrays.copyOfRange(bin, 3 * i, 3 * i + 3))
              .containsExactly((float) label, (float) -label, 1);
          assertThat(Arrays.copyOfRange(txt, 12 * i, 12 * i + 12))
              .isEqualTo(Arrays.copyOf(text("sample " + label), 12));
          assertThat(lengths[i]).isEqualTo(("sample " + label).length());
          assertThat(decoded[2 * i]).isEqualTo((byte) (label + 1));
          assertThat(decoded[2 * i + 1]).isEqualTo((byte) label);
          all.add(label);
        }
      }
      if (all.size() >= most) {
        break;
      }
    }
    return all;
  }

  private static List<Long> numbers() {
    return LongStream.range(0, SAMPLES).boxed().toList();
  }

  @Test
  void samplesComeInTheOrderOfTheArchives() {
    write();
    try (NDManager manager = NDManager.newBaseManager()) {
      for (String[] names :
          List.of(
              new String[] {folder.toString()},
              new String[] {folder + "/train-{000..003}.tar"},
              new String[] {folder + "/train-*.tar"},
              new String[] {folder + "/train-{000,001}.tar", folder + "/train-00{2..3}.tar"})) {
        try (WebDataset dataset = dataset(names).build()) {
          assertThat(dataset.batchesPerEpoch()).hasValue(7);
          assertThat(checkedLabels(dataset.getData(manager), SAMPLES)).isEqualTo(numbers());
        }
      }
    }
  }

  @Test
  void shuffledSamplesComeOnceAnEpochAndResume() {
    write();
    try (NDManager manager = NDManager.newBaseManager();
        WebDataset dataset = dataset(folder.toString()).optShuffle(7).build();
        WebDataset resumed = dataset(folder.toString()).optShuffle(7).build()) {
      List<Long> first = checkedLabels(dataset.getData(manager), SAMPLES);
      assertThat(new TreeSet<>(first)).containsExactlyElementsOf(numbers());
      assertThat(first).isNotEqualTo(numbers());
      resumed.restore(dataset.state());
      List<Long> second = checkedLabels(resumed.getData(manager), 48);
      assertThat(second).isNotEqualTo(first.subList(0, 48));
      dataset.restore(resumed.state());
      List<Long> rest = checkedLabels(dataset.getData(manager), SAMPLES);
      second.addAll(rest);
      assertThat(new TreeSet<>(second)).containsExactlyElementsOf(numbers());
    }
  }

  @Test
  void indexesTellWhatTheHeadersTell() {
    write();
    assertThatThrownBy(() -> dataset(folder.toString()).optIndex(IndexUse.REQUIRE).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("train-000.tar.gantry-index does not exist; index the archive");
    try (NDManager manager = NDManager.newBaseManager();
        WebDataset scanned =
            dataset(folder.toString()).optShuffle(7).optIndex(IndexUse.NONE).build()) {
      String state = scanned.state();
      List<Long> expected = checkedLabels(scanned.getData(manager), SAMPLES);
      for (IndexUse use : List.of(IndexUse.BUILD, IndexUse.REQUIRE, IndexUse.WHERE_THERE)) {
        try (WebDataset indexed = dataset(folder.toString()).optShuffle(7).optIndex(use).build()) {
          assertThat(indexed.state()).isEqualTo(state);
          assertThat(checkedLabels(indexed.getData(manager), SAMPLES)).isEqualTo(expected);
        }
      }
    }
  }

  @Test
  void ranksShareTheSamples() {
    write();
    List<Long> all = new ArrayList<>();
    try (NDManager manager = NDManager.newBaseManager()) {
      for (int rank = 0; rank < 2; rank++) {
        try (WebDataset dataset =
            dataset(folder.toString()).optShuffle(3).optRank(rank, 2).build()) {
          all.addAll(checkedLabels(dataset.getData(manager), SAMPLES));
        }
      }
    }
    assertThat(all).hasSize(SAMPLES);
    assertThat(new TreeSet<>(all)).containsExactlyElementsOf(numbers());
  }

  @Test
  void fieldsThatTellWhatTheyAreNeedNotBeNamed() throws IOException {
    Path file = folder.resolve("a.tar");
    try (TarArchiveOutputStream tar = new TarArchiveOutputStream(Files.newOutputStream(file))) {
      for (int i = 0; i < 3; i++) {
        add(tar, i + ".npy", npy(i));
        add(tar, i + ".cls", text("" + i));
      }
    }
    try (WebDataset dataset = WebDataset.builder().setPath(file).setSampling(3).build();
        NDManager manager = NDManager.newBaseManager();
        Batch batch = dataset.getData(manager).iterator().next()) {
      assertThat(batch.getData().get("npy").toFloatArray()).containsExactly(0, 1, 1, 2, 2, 3);
      assertThat(batch.getLabels().get("cls").toLongArray()).containsExactly(0, 1, 2);
    }
  }

  private static byte[] npy(int i) {
    String header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    header += " ".repeat(117 - header.length()) + "\n";
    return ByteBuffer.allocate(136)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put("\u0093NUMPY\u0001\u0000".getBytes(StandardCharsets.ISO_8859_1))
        .putShort((short) 118)
        .put(text(header))
        .putFloat(i)
        .putFloat(i + 1)
        .array();
  }

  @Test
  void misusesAreNamed() {
    assertThatThrownBy(() -> dataset(folder.toString()).build())
        .isInstanceOf(MisuseException.class)
        .hasMessage("setPath: there is no archive named *.tar in " + folder);
    write();
    assertThatThrownBy(() -> WebDataset.builder().setPath(folder).setSampling(2).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("addField was not called")
        .hasMessageContaining("[txt, x, bin]");
    assertThatThrownBy(() -> WebDataset.builder().setSampling(2).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("setPath was not called");
    assertThatThrownBy(() -> dataset(folder + "/none-*.tar").build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("there is no such file");
    assertThatThrownBy(() -> dataset(folder + "/none-{0..1}.tar").build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("none-0.tar");
    assertThatThrownBy(() ->
            WebDataset.builder()
                .setPath(folder.toString())
                .addField(MemberField.integer("cls"))
                .setSampling(2)
                .build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("no field is data: labels are [cls]");
    assertThatThrownBy(
            () -> dataset(folder.toString()).addField(MemberField.padded("cls", 1)).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("two fields have one name");
    assertThatThrownBy(() -> MemberField.raw("jpg;", DType.U8)).isInstanceOf(MisuseException.class);
  }

  @Test
  void aFileOfAnotherFormatIsCalledWhatItIs() throws IOException {
    byte[] bytes = Arrays.copyOf(new byte[] {'P', 'K', 3, 4}, 1024);
    Path file = Files.write(folder.resolve("model.pt"), bytes);
    for (ThrowingCallable build :
        List.<ThrowingCallable>of(
            () -> dataset(file.toString()).build(),
            () -> TfRecordDataset.builder().setPath(file).setSampling(2).build(),
            () -> ShardDataset.builder().setPath(file).setSampling(2).build())) {
      assertThatThrownBy(build)
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("the file is a ZIP archive");
    }
  }

  @Test
  void recordsAndArchivesAreTakenForWhatTheyAre() throws IOException {
    write();
    Path records = folder.resolve("a.tfrecord");
    try (TfRecordWriter writer = TfRecordWriter.create(records, Compression.NONE)) {
      writer.write(new byte[600]);
      writer.commit();
    }
    assertThatThrownBy(() -> dataset(records.toString()).build())
        .hasMessageEndingWith("; the file is TFRecord, which TfRecordDataset reads");
    assertThatThrownBy(() ->
            TfRecordDataset.builder()
                .setPath(folder.resolve("train-000.tar"))
                .setSampling(2)
                .build())
        .hasMessageEndingWith("; the file is a tar archive, which WebDataset reads");
  }

  @Test
  void aDamagedArchiveIsNamed() throws IOException {
    write();
    byte[] all = Files.readAllBytes(folder.resolve("train-002.tar"));
    all[512 * 4] ^= 1;
    Files.write(folder.resolve("train-002.tar"), all);
    assertThatThrownBy(() -> dataset(folder.toString()).build())
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("train-002.tar: offset 2048: header-checksum");
  }

  @Test
  void someSamplesAreChosen() {
    write();
    try (NDManager manager = NDManager.newBaseManager();
        WebDataset train =
            dataset(folder.toString())
                .optFilter("cls", label -> label.intValue() >= 20)
                .optSplit(3, 0, 3, 1)
                .optShuffle(4)
                .build()) {
      assertThat(train.size()).hasValue(60);
      assertThat(checkedLabels(train.getData(manager), Integer.MAX_VALUE))
          .hasSize(60)
          .doesNotHaveDuplicates()
          .allMatch(label -> label >= 20);
      assertThat(train.classWeights("cls")).hasSize(60).containsValue(1.0);
    }
  }

  private static List<Path> temporaryArchives() throws IOException {
    try (Stream<Path> files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
      return files.filter(file -> file.toString().matches(".*/gantry-\\d+[.]tar")).toList();
    }
  }

  @Test
  void compressedArchivesAreReadInAnyOrderToo() throws IOException {
    write();
    List<Path> before = temporaryArchives();
    try (NDManager manager = NDManager.newBaseManager();
        WebDataset plain = dataset(folder.toString()).optShuffle(4).build()) {
      List<Long> expected = checkedLabels(plain.getData(manager), Integer.MAX_VALUE);
      try (Stream<Path> archives = Files.list(folder)) {
        for (Path archive : archives.toList()) {
          Path gz = archive.resolveSibling(archive.getFileName() + ".gz");
          try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(gz))) {
            Files.copy(archive, out);
          }
        }
      }
      String names = folder + "/train-*.tar.gz";
      String state;
      try (WebDataset killed = dataset(names).optShuffle(4).build()) {
        assertThat(temporaryArchives()).hasSize(before.size() + 4);
        assertThat(checkedLabels(killed.getData(manager), 48)).isEqualTo(expected.subList(0, 48));
        state = killed.state();
      }
      try (WebDataset resumed = dataset(names).optShuffle(4).build()) {
        resumed.restore(state);
        assertThat(checkedLabels(resumed.getData(manager), Integer.MAX_VALUE))
            .isEqualTo(expected.subList(48, SAMPLES));
      }
      Path cut = Files.write(folder.resolve("cut.tar.gz"), new byte[] {0x1f, (byte) 0x8b, 8, 0});
      assertThatThrownBy(() -> dataset(cut.toString()).build())
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("cut.tar.gz");
    }
    assertThat(temporaryArchives()).isEqualTo(before);
  }
}
