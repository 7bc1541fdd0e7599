// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.djl.internal.training.TrainingContents;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Loads that compare checksums of the bytes that they read.
@ExtendWith(NoLeaks.class)
class VerifiedLoadTest {
  private static final int MANY = 500_000;

  /// The length of a line's end: eight digits and a line feed.
  private static final int SUM_LENGTH = 9;

  private static final LoadOptions VERIFIED = LoadOptions.builder().optVerify(true).build();

  @TempDir private Path folder;
  private NDManager manager;
  private Path file;

  @BeforeEach
  void write() throws IOException {
    manager = NDManager.newBaseManager();
    file = write(2);
  }

  private Path write(double second) throws IOException {
    return new WeightsFile()
        .vector("odd", DType.U8, 1, second, 3)
        .tensor("grid", DType.F32, TensorShape.of(3, 2), 1, 2, 3, 4, 5, 6)
        .vector("many", DType.F32, DoubleStream.iterate(0, i -> i + 1).limit(MANY).toArray())
        .write(folder.resolve("w.safetensors"));
  }

  @AfterEach
  void close() {
    manager.close();
  }

  private int build() {
    return SafetensorsSums.build(GantrySession.shared(), file);
  }

  private NDList load(LoadOptions options) {
    try (Weights weights = Weights.open(file)) {
      return weights.load(manager, options);
    }
  }

  private long damage(String tensor) throws IOException {
    StoredTensor stored =
        SafetensorsOpener.open(GantrySession.shared(), file).tensors().get(tensor);
    long offset = stored.extent().offset();
    byte[] bytes = Files.readAllBytes(file);
    bytes[Math.toIntExact(stored.extent().end() - 1)] ^= 1;
    Files.write(file, bytes);
    return offset;
  }

  @Test
  void whatIsAsItWasLoads() {
    assertThat(build()).isEqualTo(3);
    assertThat(load(VERIFIED).get("grid").toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
    try (Weights weights = Weights.open(file);
        TensorMemory memory = weights.loadMemory(VERIFIED)) {
      assertThat(memory).isNotNull();
      NDArray grid = manager.zeros(new Shape(3, 2));
      weights.copyTo(Map.of("grid", grid), VERIFIED);
      assertThat(grid.toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
    }
  }

  @Test
  void aTensorThatDiffersIsNamedWithItsFileAndOffset() throws IOException {
    build();
    long offset = damage("many");
    assertThat(load(LoadOptions.defaults())).as("not compared").hasSize(3);
    assertThatThrownBy(() -> load(VERIFIED))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining(file.toString())
        .hasMessageContaining("offset " + offset)
        .hasMessageContaining("checksum-mismatch: tensor 'many' has CRC32C");
    try (Weights weights = Weights.open(file)) {
      NDArray many = manager.zeros(new Shape(MANY));
      assertThatThrownBy(() -> weights.copyTo(Map.of("many", many), VERIFIED))
          .isInstanceOfSatisfying(
              TransferException.IncompleteRead.class,
              failed -> assertThat(failed.complete()).isEmpty())
          .hasMessageContainingAll("tensor 'many'", "partly overwritten")
          .hasCauseInstanceOf(TransferException.class)
          .hasRootCauseInstanceOf(MalformedFileException.class);
      NDArray grid = manager.zeros(new Shape(3, 2));
      weights.copyTo(Map.of("grid", grid), VERIFIED);
      assertThat(grid.toFloatArray()).as("not damaged").containsExactly(1, 2, 3, 4, 5, 6);
    }
  }

  @Test
  void checksumsThatAreMissingStaleOrDamagedAreErrors() throws IOException {
    assertThatThrownBy(() -> load(VERIFIED))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("w.safetensors.gantry-sums does not exist")
        .hasMessageContaining("`gantry index ");
    build();
    byte[] sums = Files.readAllBytes(SafetensorsSums.sumsFile(file));
    Files.delete(file);
    file = new WeightsFile().vector("other", DType.U8, 1).write(folder.resolve("w.safetensors"));
    assertThatThrownBy(() -> load(VERIFIED))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("stale-sums: the checksums are of another w.safetensors");
    // A file of checksums that Gantry made may be replaced.
    build();
    assertThat(load(VERIFIED)).hasSize(1);
    write(2);
    sums[sums.length - 1] ^= 1;
    Files.write(SafetensorsSums.sumsFile(file), sums);
    assertThatThrownBy(() -> load(VERIFIED)).hasMessageContaining("checksum-mismatch");
    // The line's checksum is no number, but the checksum of all lines is right.
    int end = sums.length - SUM_LENGTH;
    sums[end - 2] = 'z';
    int sum = Crc32c.of(MemorySegment.ofArray(sums).asSlice(0, end));
    System.arraycopy(HexFormat.of().toHexDigits(sum).getBytes(US_ASCII), 0, sums, end, 8);
    Files.write(SafetensorsSums.sumsFile(file), sums);
    assertThatThrownBy(() -> load(VERIFIED))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("checksum-mismatch");
  }

  @Test
  void aFileOfTheSameShapeAndOtherValuesDiffers() throws IOException {
    build();
    Files.delete(file);
    write(5);
    assertThatThrownBy(() -> load(VERIFIED)).hasMessageContaining("tensor 'odd' has CRC32C");
  }

  @Test
  void aForeignFileIsNotReplaced() throws IOException {
    Path sums = SafetensorsSums.sumsFile(file);
    Files.writeString(sums, "mine");
    assertThatThrownBy(this::build)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("is not replaced");
    assertThat(Files.readString(sums)).isEqualTo("mine");
    Files.copy(file, sums, StandardCopyOption.REPLACE_EXISTING);
    assertThatThrownBy(this::build).hasMessageContaining("is not replaced");
  }

  @Test
  void nothingIsComparedOfRowsAndNothingCanBeOfMaps() throws IOException {
    build();
    var _ = damage("grid");
    LoadOptions rows =
        LoadOptions.builder()
            .optVerify(true)
            .optSelection(TensorSelection.names(List.of("grid")).rows("grid", 0, 1))
            .build();
    assertThat(load(rows).get("grid").toFloatArray()).containsExactly(1, 2);
    LoadOptions lazy = LoadOptions.builder().optVerify(true).optLazy(true).build();
    assertThatThrownBy(() -> load(lazy))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optVerify compares what a load reads");
  }

  @Test
  void aCheckpointHasItsChecksums() throws IOException {
    Path saves = folder.resolve("saves");
    try (Training saved = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver =
            CheckpointSaver.builder().setPath(saves).optMode(SaveMode.SYNC).build()) {
      saved.steps(0, 1);
      var _ = saver.save(1, saved.model, saved.trainer);
    }
    Path model;
    try (Weights weights = Checkpoints.at(saves).openLatest().orElseThrow()) {
      assertThat(weights.load(manager, VERIFIED)).isNotEmpty();
      model = weights.files().getFirst().path();
      try (Weights byPath = Weights.open(model)) {
        assertThat(byPath.load(manager, VERIFIED)).isNotEmpty();
      }
      assertThat(model.toString()).contains(TrainingContents.MODEL);
      byte[] bytes = Files.readAllBytes(model);
      bytes[bytes.length - 1] ^= 1;
      Files.write(model, bytes);
    }
    try (Weights latest = Checkpoints.at(saves).openLatest().orElseThrow();
        Weights byPath = Weights.open(model)) {
      for (Weights weights : List.of(latest, byPath)) {
        assertThat(weights.load(manager, LoadOptions.defaults())).isNotEmpty();
        assertThatThrownBy(() -> weights.load(manager, VERIFIED))
            .isInstanceOf(MalformedFileException.class)
            .hasMessageContaining("checksum-mismatch: tensor '");
      }
    }
  }

  @Test
  void sumsAreNoWeightsOfTheirFolder() throws IOException {
    build();
    try (Weights weights = Weights.open(folder);
        Stream<Path> files = Files.list(folder)) {
      assertThat(weights.load(manager, VERIFIED)).hasSize(3);
      assertThat(files).hasSize(2);
    }
  }
}
