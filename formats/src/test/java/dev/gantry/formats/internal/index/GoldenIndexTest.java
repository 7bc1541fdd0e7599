// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A file and its index of version 1 that another program wrote from the format's description. The
/// index must stay readable, and Gantry must write the same one.
@ExtendWith(NoLeaks.class)
class GoldenIndexTest {
  private static final int RECORDS = 3;

  /// The modification time in the index: 2001-02-03 04:05:06 and 7 ns.
  private static final FileTime MODIFIED =
      FileTime.from(981_173_106_000_000_007L, TimeUnit.NANOSECONDS);

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private Path file;
  private byte[] golden;

  @BeforeEach
  void copy() throws IOException, URISyntaxException {
    Path there = Path.of(GoldenIndexTest.class.getResource("golden/examples.tfrecord").toURI());
    file = Files.copy(there, folder.resolve(there.getFileName()));
    Files.setLastModifiedTime(file, MODIFIED);
    golden = Files.readAllBytes(TfRecordIndex.indexFile(there));
  }

  @AfterEach
  void close() {
    session.close();
  }

  /// An index without a checksum of the records, which were added later, is read as before.
  @ParameterizedTest
  @ValueSource(strings = {"examples.tfrecord.gantry-index", "earlier.gantry-index"})
  void isReadAsItWasWritten(String name) throws IOException, URISyntaxException {
    Path there = Path.of(GoldenIndexTest.class.getResource("golden/" + name).toURI());
    Files.copy(there, TfRecordIndex.indexFile(file));
    byte[] bytes = Files.readAllBytes(file);
    try (TfRecordIndex index = ((Usable) TfRecordIndex.open(file, session)).index()) {
      assertThat(index.summary().records()).isEqualTo(RECORDS);
      assertThat(index.summary().features())
          .containsExactly(
              direct("image", FeatureSpec.Kind.BYTES, 5),
              direct("weights", FeatureSpec.Kind.FLOAT, 3),
              direct("label", FeatureSpec.Kind.INT64, 2),
              hindered("text", FeatureSpec.Kind.BYTES, 0, new Obstacle(1, "it has 4 bytes, not 1")),
              direct("né", FeatureSpec.Kind.INT64, 1),
              hindered(
                  "apart",
                  FeatureSpec.Kind.FLOAT,
                  0,
                  new Obstacle(0, "its 2 floats are not packed")),
              hindered("late", FeatureSpec.Kind.FLOAT, 2, new Obstacle(0, "it is missing")));
      for (int i = 0; i < RECORDS; i++) {
        byte first = (byte) (16 * i);
        assertThat(value(index, bytes, "image", i))
            .containsExactly(first, first + 1, first + 2, first + 3, first + 4);
        ByteBuffer weights =
            ByteBuffer.wrap(value(index, bytes, "weights", i)).order(ByteOrder.LITTLE_ENDIAN);
        assertThat(weights.getFloat()).isEqualTo(i + 0.5f);
        assertThat(weights.getFloat()).isEqualTo(-i);
        assertThat(IndexReads.values(index, "label", i)).containsExactly(-1 - i, (1L << 40) + i);
        assertThat(IndexReads.values(index, "né", i)).containsExactly(300 * i);
        String text = new String(value(index, bytes, "text", i), StandardCharsets.US_ASCII);
        assertThat(text).isEqualTo(new String[] {"a", "abcd", ""}[i]);
      }
      assertThat(IndexReads.isPlaced(index, "apart")).isFalse();
      assertThat(IndexReads.isPlaced(index, "late")).isFalse();
    }
  }

  private static byte[] value(TfRecordIndex index, byte[] bytes, String feature, int record) {
    int from = (int) IndexReads.valueOffset(index, feature, record);
    return Arrays.copyOfRange(
        bytes, from, from + (int) IndexReads.valueLength(index, feature, record));
  }

  private static TfRecordIndex.Feature direct(String name, FeatureSpec.Kind kind, long elements) {
    return new TfRecordIndex.Feature(
        name, Optional.of(kind), 0, OptionalLong.of(elements), Optional.empty());
  }

  private static TfRecordIndex.Feature hindered(
      String name, FeatureSpec.Kind kind, long missing, Obstacle obstacle) {
    return new TfRecordIndex.Feature(
        name, Optional.of(kind), missing, OptionalLong.empty(), Optional.of(obstacle));
  }

  @Test
  void oursIsTheSameToTheByte() throws IOException {
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    assertThat(Files.readAllBytes(TfRecordIndex.indexFile(file))).isEqualTo(golden);
  }
}
