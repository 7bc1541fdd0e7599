// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Checkpoints of steps 1 and 2 that also have copies in another store.
@ExtendWith(NoLeaks.class)
class RemoteCheckpointTest {
  @TempDir(factory = InMemory.class)
  private Path folder;

  private final String bucket = UUID.randomUUID().toString();
  private Training training;
  private PlainState first;
  private PlainState second;

  private CheckpointSaver.Builder saver() {
    return CheckpointSaver.builder().setPath(folder).optRemote("memory://" + bucket + "/run");
  }

  @BeforeEach
  void save() {
    Training.seed(1);
    try (Training saved = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = saver().build()) {
      saved.steps(0, 1);
      first = PlainState.of(saved.trainer);
      save(saver, 1, saved);
      saved.steps(1, 2);
      second = PlainState.of(saved.trainer);
      save(saver, 2, saved);
    }
    training = new Training(Training.perceptron(), Optimizers.adam());
    training.steps(100, 102);
  }

  /// Saves a step with the step's number as the loss.
  private static void save(CheckpointSaver saver, long step, Training training) {
    var _ =
        saver.save(
            SaveRequest.builder()
                .setStep(step)
                .setModel(training.model)
                .optTrainer(training.trainer)
                .optMetric("loss", (double) step)
                .build());
  }

  @AfterEach
  void close() {
    training.close();
  }

  private Path file(int step, String group) {
    Path checkpoint = folder.resolve("gantry-step-" + step);
    return Stream.of(group + ".safetensors", group + "-00001-of-00001.safetensors")
        .map(checkpoint::resolve)
        .filter(Files::exists)
        .findFirst()
        .orElseThrow();
  }

  private static void turnBit(Path file, long offset) throws IOException {
    try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
      long at = offset < 0 ? opened.length() + offset : offset;
      opened.seek(at);
      int old = opened.read();
      opened.seek(at);
      opened.write(old ^ 1);
    }
  }

  private void damage(int step, String how) throws IOException {
    switch (how) {
      case "tensor" -> turnBit(file(step, "model"), -1);
      case "header" -> turnBit(file(step, "optimizer"), 100);
      case "missing" -> Files.delete(file(step, "optimizer"));
      case "manifest" -> turnBit(folder.resolve("gantry-step-" + step + "/manifest.json"), 40);
      case "no manifest" -> Files.delete(folder.resolve("gantry-step-" + step + "/manifest.json"));
      default -> throw new IllegalArgumentException(how);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tensor", "header", "missing", "manifest", "no manifest"})
  void whatIsDamagedHereComesFromThere(String how) throws IOException {
    damage(2, how);
    damage(1, how);
    for (boolean fallBack : List.of(false, true)) {
      try (CheckpointSaver saver = saver().optFallBack(fallBack).build()) {
        assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
            .isEqualTo(2);
        assertThat(PlainState.of(training.trainer)).isEqualTo(second);
      }
    }
    try (CheckpointSaver saver = saver().build()) {
      assertThat(saver.restore(1, training.model, training.trainer).step()).isEqualTo(1);
      assertThat(PlainState.of(training.trainer)).isEqualTo(first);
      assertThat(saver.list()).extracting(one -> one.step()).containsExactly(1L, 2L);
    }
    // The restores have replaced the damaged files from the copies.
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
          .isEqualTo(2);
    }
  }

  @Test
  void uploadsAreAwaitedOfSavesThatAreStillBehindTheTraining() {
    try (CheckpointSaver saver = saver().optMode(SaveMode.ASYNC).build()) {
      save(saver, 7, training);
      saver.awaitUploads();
      assertThat(MemoryStore.names(bucket + "/run"))
          .anyMatch(name -> name.contains("step-7") && name.endsWith("/manifest.json"));
    }
  }

  @Test
  void whereBothAreDamagedTheOneBeforeServes() throws IOException {
    damage(2, "tensor");
    for (String name : MemoryStore.names(bucket + "/run")) {
      if (name.startsWith("gantry-step-2-")
          && name.contains("/model")
          && name.endsWith(".safetensors")) {
        MemoryStore.put(bucket + "/run/" + name, new byte[(int) Files.size(file(2, "model"))]);
      }
    }
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(folder.toString())
          .hasMessageContaining("checksum-mismatch");
    }
    try (CheckpointSaver saver = saver().optFallBack(true).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
          .isEqualTo(1);
      assertThat(PlainState.of(training.trainer)).isEqualTo(first);
    }
  }

  /// It may be intact, and its copy may be of another disk's trouble.
  @Test
  void whatCannotBeReadForNowIsNotReplaced() throws IOException {
    Path file = file(2, "model");
    Files.delete(file);
    // A link to itself cannot be opened.
    Files.createSymbolicLink(file, file);
    try (CheckpointSaver saver = saver().optFallBack(true).build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ELOOP");
    }
    assertThat(file).isSymbolicLink();
  }

  /// The store keeps the best checkpoint by its own retention, and a restore fetches it from
  /// there.
  @Test
  void theBestByAMetricIsKeptThere() {
    Retention best =
        new Retention(1, 0, Optional.of(new Retention.Best("loss", 1, Retention.Goal.MINIMIZE)));
    try (CheckpointSaver saver =
        CheckpointSaver.builder()
            .setPath(folder)
            .optRemote("memory://" + bucket + "/run", best)
            .optKeepLast(1)
            .build()) {
      training.steps(102, 103);
      save(saver, 3, training);
    }
    assertThat(MemoryStore.names(bucket + "/run").stream().filter(n -> n.endsWith("manifest.json")))
        .extracting(name -> name.substring(0, "gantry-step-1-".length()))
        .containsExactlyInAnyOrder("gantry-step-1-", "gantry-step-3-");
    try (CheckpointSaver saver = saver().build()) {
      assertThat(saver.list()).extracting(one -> one.step()).containsExactly(3L);
      assertThat(saver.restore(1, training.model, training.trainer).step()).isEqualTo(1);
      assertThat(PlainState.of(training.trainer)).isEqualTo(first);
    }
  }

  private void damageThere(int step) throws IOException {
    for (String name : MemoryStore.names(bucket + "/run")) {
      if (name.startsWith("gantry-step-" + step) && name.contains("/model.")) {
        byte[] bytes = Files.readAllBytes(file(step, "model"));
        bytes[bytes.length - 1] ^= 1;
        if (name.endsWith(".safetensors")) {
          MemoryStore.put(bucket + "/run/" + name, bytes);
        }
      }
    }
  }

  @Test
  void aDamagedLatestThereGivesWayToTheOneBeforeIt(@TempDir Path empty) throws IOException {
    damageThere(2);
    CheckpointSaver.Builder builder = saver().setPath(empty);
    try (CheckpointSaver saver = builder.build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch");
    }
    try (CheckpointSaver saver = builder.optFallBack(true).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
          .isEqualTo(1);
      assertThat(PlainState.of(training.trainer)).isEqualTo(first);
    }
    damageThere(1);
    try (CheckpointSaver saver =
        builder.setPath(empty.resolve("other")).optFallBack(true).build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch");
    }
  }

  /// Step 2 is damaged in both stores, and the remote store alone has step 1.
  @Test
  void theOneBeforeMayComeFromThere() throws IOException {
    damageThere(2);
    damage(2, "tensor");
    Path gone = folder.resolve("gantry-step-1");
    try (Stream<Path> files = Files.list(gone)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(gone);
    try (CheckpointSaver saver = saver().optFallBack(true).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
          .isEqualTo(1);
      assertThat(PlainState.of(training.trainer)).isEqualTo(first);
    }
  }

  @Test
  void weightsThatAreNotThoseOfTheManifestAreNotLoaded() throws IOException {
    damageThere(2);
    try (Weights there = Checkpoints.at("memory://" + bucket + "/run").openLatest().orElseThrow();
        NDManager manager = NDManager.newBaseManager()) {
      assertThatThrownBy(() -> there.load(manager))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch")
          .hasMessageContaining("memory://" + bucket);
    }
  }

  /// While the latest checkpoint is being opened, a training saves another one and removes the
  /// latest.
  @ParameterizedTest
  @ValueSource(strings = {"manifest.json", "model.safetensors.index.json", "model.safetensors"})
  void theLatestIsOpenedAnewWhenItIsRemovedMeanwhile(String opened) {
    AtomicInteger saves = new AtomicInteger(2);
    try (CheckpointSaver saver = saver().optKeepLast(1).build()) {
      MemoryStore.beforeEachOpen(name -> {
        if (name.equals(opened) && saves.get() < 5) {
          MemoryStore.beforeEachOpen(null);
          save(saver, saves.incrementAndGet(), training);
          saver.awaitUploads();
        }
      });
      try (Weights there =
              Checkpoints.at("memory://" + bucket + "/run").openLatest().orElseThrow();
          Weights here = Checkpoints.at(folder).openLatest().orElseThrow()) {
        assertThat(saves).hasValue(3);
        assertThat(there.files().getFirst().toString()).contains("gantry-step-3-");
        assertThat(there.tensors().keySet()).isEqualTo(here.tensors().keySet());
      }
    } finally {
      MemoryStore.beforeEachOpen(null);
    }
  }

  @Test
  void weightsThereAreOpenedToo() {
    try (Weights there = Checkpoints.at("memory://" + bucket + "/run").openLatest().orElseThrow();
        Weights here = Checkpoints.at(folder).openLatest().orElseThrow()) {
      assertThat(there.tensors().keySet()).isEqualTo(here.tensors().keySet());
    }
  }
}
