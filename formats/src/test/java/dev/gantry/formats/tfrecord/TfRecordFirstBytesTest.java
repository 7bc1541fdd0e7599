// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@ExtendWith(NoLeaks.class)
class TfRecordFirstBytesTest {
  private static final byte[] FILE = Framed.of(List.of(new byte[] {1, 2, 3}));

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  private boolean probe(byte[] bytes) throws IOException {
    return TfRecordReader.isTfRecord(
        session, Location.of(Files.write(folder.resolve("file"), bytes)));
  }

  private static byte[] gzip(byte[] bytes) throws IOException {
    ByteArrayOutputStream compressed = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(compressed)) {
      out.write(bytes);
    }
    return compressed.toByteArray();
  }

  private static byte[] zlib(byte[] bytes) throws IOException {
    ByteArrayOutputStream compressed = new ByteArrayOutputStream();
    try (DeflaterOutputStream out = new DeflaterOutputStream(compressed)) {
      out.write(bytes);
    }
    return compressed.toByteArray();
  }

  static Stream<Map.Entry<String, Verdict>> corpus() {
    return Verdict.all().entrySet().stream();
  }

  /// Only a file with a correct first header, or an empty stream, counts as TFRecord.
  @ParameterizedTest
  @MethodSource("corpus")
  void theCorpusIsTold(Map.Entry<String, Verdict> entry) {
    Path file = Verdict.CORPUS.resolve(entry.getKey());
    boolean hasHeader = !entry.getValue().records().isEmpty();
    assertThat(TfRecordReader.isTfRecord(session, Location.of(file))).isEqualTo(hasHeader);
  }

  @Test
  void weightsAreCalledSo() throws IOException {
    byte[] weights = "\2\0\0\0\0\0\0\0{}".getBytes(StandardCharsets.ISO_8859_1);
    Path file = Files.write(folder.resolve("model.safetensors"), Arrays.copyOf(weights, 100));
    try (TfRecordReader reader =
        TfRecordReader.open(session, Location.of(file), TfRecordOptions.defaults())) {
      assertThatThrownBy(reader::next)
          .isInstanceOf(MalformedFileException.class)
          .hasMessageEndingWith("; the file is safetensors, which Weights.open reads");
    }
    weights[8] = '[';
    Path other = Files.write(folder.resolve("other"), Arrays.copyOf(weights, 100));
    try (TfRecordReader reader =
        TfRecordReader.open(session, Location.of(other), TfRecordOptions.defaults())) {
      assertThatThrownBy(reader::next).hasMessageEndingWith("the checksum of its length is wrong");
    }
  }

  @Test
  void aHeaderIsEnough() throws IOException {
    assertThat(probe(FILE)).isTrue();
    assertThat(probe(Arrays.copyOf(FILE, 12))).isTrue();
    assertThat(probe(Arrays.copyOf(FILE, 11))).isFalse();
    assertThat(probe(Framed.header(-1))).isTrue();
    byte[] damaged = FILE.clone();
    damaged[0]++;
    assertThat(probe(damaged)).isFalse();
  }

  @Test
  void compressedFilesAreTold() throws IOException {
    assertThat(probe(gzip(FILE))).isTrue();
    assertThat(probe(zlib(FILE))).isTrue();
    assertThat(probe(gzip(new byte[0]))).isTrue();
    assertThat(probe(zlib(new byte[0]))).isTrue();
    assertThat(probe(gzip(new byte[100]))).isFalse();
    assertThat(probe(gzip(new byte[] {1, 2}))).isFalse();
    assertThat(probe(Arrays.copyOf(gzip(FILE), 5))).isFalse();
  }

  /// The length of a safetensors header may look like the beginning of a zlib stream.
  @Test
  void whatOnlyLooksCompressedIsNone() throws IOException {
    ByteBuffer safetensors = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
    safetensors.putLong(0x9c78).put((byte) '{');
    assertThat(probe(safetensors.array())).isFalse();
    assertThat(probe(new byte[0])).isFalse();
  }

  @Test
  void whatIsNoFileIsAnError() {
    assertThatThrownBy(() -> TfRecordReader.isTfRecord(session, Location.of(folder)))
        .isInstanceOf(TransferException.class);
    assertThatThrownBy(
            () -> TfRecordReader.isTfRecord(session, Location.of(folder.resolve("missing"))))
        .isInstanceOf(TransferException.class);
    assertThatThrownBy(() -> TfRecordReader.isTfRecord(session, Location.of(Path.of("/dev/null"))))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("not-a-regular-file");
  }
}
