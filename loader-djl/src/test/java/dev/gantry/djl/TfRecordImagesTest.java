// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Batches from records with a picture in `image/encoded`, like those of ImageNet.
@ExtendWith(NoLeaks.class)
class TfRecordImagesTest {
  private static final String IMAGE = "image/encoded";
  private static final String LABEL = "image/class/label";
  private static final int SAMPLES = 10;
  private static final int SIDE = 8;

  @TempDir Path folder;
  private Path file;

  @BeforeEach
  void setFile() {
    file = folder.resolve("train-00000-of-00001");
  }

  /// Makes pictures of different sizes and colours.
  private static byte[] picture(int sample) throws IOException {
    BufferedImage image = new BufferedImage(16 + sample, 40 - sample, BufferedImage.TYPE_INT_RGB);
    for (int x = 0; x < image.getWidth(); x++) {
      for (int y = 0; y < image.getHeight(); y++) {
        image.setRGB(x, y, 0x070503 * (x + y + sample));
      }
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    assertThat(ImageIO.write(image, sample % 2 == 0 ? "png" : "jpeg", bytes)).isTrue();
    return bytes.toByteArray();
  }

  private void write(byte[]... pictures) throws IOException {
    try (GantrySession session = GantrySession.open();
        TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
      for (int i = 0; i < pictures.length; i++) {
        writer.write(new ExampleBuilder().bytes(IMAGE, pictures[i]).int64s(LABEL, i).toBytes());
      }
      writer.commit();
    }
  }

  private void write() throws IOException {
    byte[][] pictures = new byte[SAMPLES][];
    for (int i = 0; i < SAMPLES; i++) {
      pictures[i] = picture(i);
    }
    write(pictures);
  }

  private TfRecordDataset.Builder dataset(ImageDecoding decoding) {
    return TfRecordDataset.builder()
        .setPath(file)
        .addFeature(FeatureSpec.image(IMAGE, decoding))
        .addFeature(FeatureSpec.int64s(LABEL))
        .optLabels(LABEL)
        .setSampling(4);
  }

  /// Returns the pixels of each sample by its label.
  private static List<byte[]> pictures(TfRecordDataset dataset, NDManager manager) {
    byte[][] all = new byte[SAMPLES][];
    for (Batch batch : dataset.getData(manager)) {
      try (batch) {
        var images = batch.getData().singletonOrThrow();
        assertThat(images.getDataType()).isEqualTo(DataType.UINT8);
        assertThat(images.getShape()).isEqualTo(new Shape(batch.getSize(), SIDE, SIDE, 3));
        byte[] bytes = images.toByteArray();
        long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
        int picture = bytes.length / labels.length;
        for (int i = 0; i < labels.length; i++) {
          all[(int) labels[i]] = Arrays.copyOfRange(bytes, i * picture, (i + 1) * picture);
        }
      }
    }
    return new ArrayList<>(Arrays.asList(all));
  }

  @Test
  void picturesAreThoseThatTheDecodingMakes() throws IOException {
    write();
    ImageDecoding decoding = ImageDecoding.of(SIDE, SIDE);
    try (NDManager manager = NDManager.newBaseManager();
        TfRecordDataset dataset = dataset(decoding).build()) {
      List<byte[]> pictures = pictures(dataset, manager);
      for (int i = 0; i < SAMPLES; i++) {
        try (Arena arena = Arena.ofConfined()) {
          MemorySegment encoded = arena.allocateFrom(ValueLayout.JAVA_BYTE, picture(i));
          MemorySegment expected = arena.allocate(3L * SIDE * SIDE);
          decoding.decode(encoded, expected, 0);
          assertThat(pictures.get(i)).isEqualTo(expected.toArray(ValueLayout.JAVA_BYTE));
        }
      }
    }
  }

  @Test
  void randomPartsDependOnSampleAndEpochAlone() throws IOException {
    write();
    ImageDecoding decoding = ImageDecoding.of(SIDE, SIDE).randomResizedCrop().flip();
    try (NDManager manager = NDManager.newBaseManager();
        TfRecordDataset dataset = dataset(decoding).build();
        TfRecordDataset shuffled = dataset(decoding).optShuffle(1).optThreads(1).build()) {
      List<byte[]> first = pictures(dataset, manager);
      List<byte[]> second = pictures(dataset, manager);
      assertThat(pictures(shuffled, manager)).usingRecursiveComparison().isEqualTo(first);
      assertThat(pictures(shuffled, manager)).usingRecursiveComparison().isEqualTo(second);
      assertThat(second).usingRecursiveComparison().isNotEqualTo(first);
    }
  }

  @Test
  void anIndexGivesThePicturesOfAStreamInAnyOrder() throws IOException {
    write();
    ImageDecoding decoding = ImageDecoding.of(SIDE, SIDE).randomResizedCrop().flip();
    try (NDManager manager = NDManager.newBaseManager();
        TfRecordDataset stream = dataset(decoding).build();
        TfRecordDataset indexed =
            dataset(decoding).optIndex(IndexUse.BUILD).optShuffle(7).build()) {
      assertThat(indexed.isIndexed()).isTrue();
      assertThat(indexed.size()).hasValue(SAMPLES);
      for (int epoch = 0; epoch < 2; epoch++) {
        assertThat(pictures(indexed, manager))
            .usingRecursiveComparison()
            .isEqualTo(pictures(stream, manager));
      }
    }
  }

  @Test
  void picturesByIndexAreChosenByTheirLabelsAndResumed() throws IOException {
    write();
    try (NDManager manager = NDManager.newBaseManager();
        TfRecordDataset dataset =
            dataset(ImageDecoding.of(SIDE, SIDE))
                .optIndex(IndexUse.BUILD)
                .optFilter(LABEL, label -> (Long) label % 2 == 0)
                .optShuffle(7)
                .build()) {
      List<Long> labels = new ArrayList<>();
      String state = "";
      for (Batch batch : dataset.getData(manager)) {
        try (batch) {
          labels.addAll(labels(batch));
          if (state.isEmpty()) {
            state = dataset.state();
          }
        }
      }
      assertThat(labels).containsExactlyInAnyOrder(0L, 2L, 4L, 6L, 8L);
      dataset.restore(state);
      try (Batch rest = dataset.getData(manager).iterator().next()) {
        assertThat(labels(rest)).isEqualTo(labels.subList(4, 5));
      }
    }
  }

  private static List<Long> labels(Batch batch) {
    return Arrays.stream(batch.getLabels().singletonOrThrow().toLongArray()).boxed().toList();
  }

  @ParameterizedTest
  @EnumSource(names = {"NONE", "BUILD"})
  void aPictureThatCannotBeDecodedIsNamed(IndexUse use) throws IOException {
    write(picture(0), new byte[] {1, 2, 3});
    try (NDManager manager = NDManager.newBaseManager();
        TfRecordDataset dataset = dataset(ImageDecoding.of(SIDE, SIDE)).optIndex(use).build()) {
      assertThatThrownBy(() -> pictures(dataset, manager))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("record 1: feature 'image/encoded': this is neither a JPEG");
    }
  }

  @Test
  void whatIsNoStringInEachRecordIsRefusedByAnIndex() throws IOException {
    write();
    ImageDecoding decoding = ImageDecoding.of(SIDE, SIDE);
    TfRecordDataset.Builder integers =
        TfRecordDataset.builder()
            .setPath(file)
            .addFeature(FeatureSpec.image(LABEL, decoding))
            .optIndex(IndexUse.BUILD)
            .setSampling(4);
    assertThatThrownBy(integers::build)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("feature 'image/class/label': of kind INT64 in ");
  }
}
