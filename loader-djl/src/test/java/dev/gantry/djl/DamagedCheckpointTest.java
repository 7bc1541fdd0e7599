// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Checkpoints of steps 1 and 2, some of which are damaged.
@ExtendWith(NoLeaks.class)
class DamagedCheckpointTest {
  @TempDir(factory = InMemory.class)
  private Path folder;

  /// The training into which checkpoints are restored; its steps differ from the saved training's.
  private Training training;

  private PlainState before;
  private PlainState first;

  @BeforeEach
  void save() {
    Training.seed(1);
    try (Training saved = new Training(Training.perceptron(), Optimizers.adam());
        CheckpointSaver saver = saver().build()) {
      saved.steps(0, 1);
      first = PlainState.of(saved.trainer);
      var _ = saver.save(1, saved.model, saved.trainer);
      saved.steps(1, 2);
      var _ = saver.save(2, saved.model, saved.trainer);
    }
    training = new Training(Training.perceptron(), Optimizers.adam());
    training.steps(100, 102);
    before = PlainState.of(training.trainer);
  }

  @AfterEach
  void close() {
    training.close();
  }

  @ParameterizedTest
  @CsvSource({"model, 05Linear_weight", "optimizer, variances/02BatchNorm_gamma"})
  void aBitThatHasTurned(String group, String tensor) throws IOException {
    Path file = turnBit(2, group, tensor);
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch")
          .hasMessageContaining("'" + tensor + "'")
          .hasMessageContaining(file.toString());
      assertUnchanged();
      assertThatThrownBy(() -> saver.restore(2, training.model, training.trainer))
          .hasMessageContaining("checksum-mismatch");
      assertUnchanged();
    }
    // Without verification the damage is not noticed.
    try (CheckpointSaver saver = saver().optVerify(false).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
          .isEqualTo(2);
    }
  }

  @Test
  void aBitThatHasTurnedInAModelAlone() throws IOException {
    turnBit(2, "model", "05Linear_weight");
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, null))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("'05Linear_weight'");
      assertUnchanged();
    }
  }

  /// The turned bit changes a letter of a tensor's name.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aHeaderThatIsDamaged(boolean modelOnly) throws IOException {
    Path shard = shard(2, "model");
    String text = Files.readString(shard, StandardCharsets.ISO_8859_1);
    turnBit(shard, text.indexOf("05Linear_bias"));
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(
              () -> saver.restoreLatest(training.model, modelOnly ? null : training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("gantry-step-2");
      assertUnchanged();
    }
  }

  @ParameterizedTest
  @CsvSource({"model, shard, -1", "model, shard, 1", "optimizer, shard, -1", "model, index, 1"})
  void aFileOfAnotherSize(String group, String kind, int more) throws IOException {
    Path file = kind.equals("index") ? index(2, group) : shard(2, group);
    try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
      opened.setLength(opened.length() + more);
    }
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("wrong-size")
          .hasMessageContaining(file.toString());
      assertUnchanged();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"model", "optimizer"})
  void aFileThatIsGone(String group) throws IOException {
    Path file = shard(2, group);
    Files.delete(file);
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, null))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("missing-file")
          .hasMessageContaining(file.toString());
      assertUnchanged();
    }
  }

  @Test
  void fallsBackToTheOneBeforeAndSaysSo() throws IOException {
    Path file = turnBit(2, "model", "01Linear_weight");
    try (CheckpointSaver saver = saver().optFallBack(true).build()) {
      String log =
          StandardError.during(() ->
              assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
                  .isEqualTo(1));
      assertThat(log).contains("WARN", "DAMAGED CHECKPOINT", "01Linear_weight", file.toString());
      assertThat(PlainState.of(training.trainer)).isEqualTo(first);
      // A restore of this very step has no fallback.
      assertThatThrownBy(() -> saver.restore(2, training.model, training.trainer))
          .hasMessageContaining("checksum-mismatch");
    }
  }

  @Test
  void fallsBackPastAFileThatIsGoneAndADamagedManifest() throws IOException {
    Files.delete(shard(2, "optimizer"));
    assertFallsBack();
    damageManifest(2);
    assertFallsBack();
  }

  @Test
  void whereAllAreDamagedThatIsAnError() throws IOException {
    turnBit(2, "model", "01Linear_weight");
    turnBit(1, "model", "01Linear_weight");
    assertNothingToFallBackTo("gantry-step-1");
    damageManifest(2);
    assertNothingToFallBackTo("gantry-step-1");
    damageManifest(1);
    assertNothingToFallBackTo("manifest.json");
  }

  @Test
  void aDamagedManifest() throws IOException {
    damageManifest(2);
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(manifest(2).toString());
      assertThatThrownBy(() -> saver.restore(2, training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(manifest(2).toString());
      assertUnchanged();
      assertThat(saver.restore(1, training.model, training.trainer).step()).isEqualTo(1);
      assertThatThrownBy(() -> saver.restore(3, training.model, training.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("no checkpoint of step 3");
    }
  }

  @Test
  void theLatestWithADamagedManifestIsRefusedByAllWhoAskForTheLatest() throws IOException {
    byte[] manifest = Files.readAllBytes(manifest(2));
    Files.write(manifest(2), Arrays.copyOf(manifest, manifest.length / 2));
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageEndingWith("; optFallBack(true) takes the last intact checkpoint before it")
          .satisfies(refusal -> {
            assertThatThrownBy(saver::latest).hasMessage(refusal.getMessage());
            // `Checkpoints` has no such option, so its message does not name the option.
            assertThatThrownBy(() -> Checkpoints.at(folder).openLatest())
                .hasMessage(refusal.getCause().getMessage());
          });
      String log =
          StandardError.during(() ->
              assertThat(saver.list()).extracting(StoredCheckpoint::step).containsExactly(1L));
      assertThat(log).containsOnlyOnce("WARN").contains(manifest(2).toString(), "left out");
      var _ = saver.save(3, training.model, training.trainer);
      assertThat(saver.latest().orElseThrow().step()).isEqualTo(3);
      Checkpoints.at(folder).openLatest().orElseThrow().close();
    }
  }

  @Test
  void withFallBackTheLatestIsTheOneBeforeADamagedManifest() throws IOException {
    damageManifest(2);
    try (CheckpointSaver saver = saver().optFallBack(true).build()) {
      String log =
          StandardError.during(() -> assertThat(saver.latest().orElseThrow().step()).isEqualTo(1));
      assertThat(log).containsOnlyOnce("WARN").contains(manifest(2).toString());
    }
  }

  @Test
  void aDamagedManifestOfAnOlderCheckpointIsLoggedAndTheLatestIsRestored() throws IOException {
    damageManifest(1);
    try (CheckpointSaver saver = saver().build()) {
      String log =
          StandardError.during(() ->
              assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
                  .isEqualTo(2));
      assertThat(log).contains("WARN", "DAMAGED CHECKPOINT", "older", manifest(1).toString());
    }
  }

  @ParameterizedTest
  @CsvSource({
    "epoch, none",
    "epoch, -1",
    "optimizer.updates, 3000000000",
    "optimizer.count.01Linear_weight, x",
    "random.seed, 1.5"
  })
  void aManifestWhoseStateIsNoNumber(String key, String value) throws IOException {
    editManifest("(\"" + key.replace(".", "\\.") + "\" *: *)\"[^\"]*\"", "$1\"" + value + "\"");
    assertManifestRefused("invalid-state", key);
  }

  @ParameterizedTest
  @ValueSource(strings = {"epoch", "optimizer.updates"})
  void aManifestThatLacksState(String key) throws IOException {
    editManifest("\"" + key.replace(".", "\\.") + "\"", "\"another\"");
    assertManifestRefused("missing-state", key);
  }

  @ParameterizedTest
  @ValueSource(strings = {"java", "torch/host"})
  void randomNumbersThatCannotBe(String generator) throws IOException {
    editManifest("(\"random\\.state\\." + generator + "\" *: *)\"[^\"]*\"", "$1\"AAAA\"");
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .hasMessageContaining("does not fit the random generator " + generator);
      assertUnchanged();
    }
  }

  private void assertManifestRefused(String kind, String key) {
    try (CheckpointSaver saver = saver().build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(manifest(2).toString())
          .hasMessageContaining(kind)
          .hasMessageContaining(key);
      assertUnchanged();
    }
  }

  private void assertFallsBack() {
    try (CheckpointSaver saver = saver().optFallBack(true).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer).orElseThrow().step())
          .isEqualTo(1);
    }
  }

  private void assertNothingToFallBackTo(String name) {
    try (CheckpointSaver saver = saver().optFallBack(true).build()) {
      assertThatThrownBy(() -> saver.restoreLatest(training.model, training.trainer))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(name);
      assertUnchanged();
    }
  }

  private void assertUnchanged() {
    assertThat(PlainState.of(training.trainer)).isEqualTo(before);
  }

  private CheckpointSaver.Builder saver() {
    return CheckpointSaver.builder().setPath(folder);
  }

  private Path manifest(long step) {
    return folder.resolve("gantry-step-" + step, "manifest.json");
  }

  private Path index(long step, String group) {
    return folder.resolve("gantry-step-" + step, group + ".safetensors.index.json");
  }

  private Path shard(long step, String group) {
    return SafetensorsOpener.open(GantrySession.shared(), index(step, group))
        .files()
        .getFirst()
        .path();
  }

  private void damageManifest(long step) throws IOException {
    Path manifest = manifest(step);
    Files.writeString(manifest, Files.readString(manifest).replace("\"files\"", "\"flies\""));
  }

  private void editManifest(String pattern, String replacement) throws IOException {
    String text = Files.readString(manifest(2));
    String edited = text.replaceFirst(pattern, replacement);
    assertThat(edited).isNotEqualTo(text);
    Files.writeString(manifest(2), sealed(edited));
  }

  /// Returns a manifest's text with the checksum that belongs to it.
  private static String sealed(String text) {
    String open = text.replaceFirst("(\"crc32c\" *: *\")[0-9a-f]{8}", "$1" + "00000000");
    int sum = Crc32c.of(MemorySegment.ofArray(open.getBytes(StandardCharsets.UTF_8)));
    return open.replaceFirst("00000000", HexFormat.of().toHexDigits(sum));
  }

  private Path turnBit(long step, String group, String tensor) throws IOException {
    StoredTensor info =
        SafetensorsOpener.open(GantrySession.shared(), index(step, group)).tensors().get(tensor);
    turnBit(info.extent().file().path(), info.extent().end() - 1);
    return info.extent().file().path();
  }

  private static void turnBit(Path file, long offset) throws IOException {
    try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
      opened.seek(offset);
      int value = opened.read();
      opened.seek(offset);
      opened.write(value ^ 1);
    }
  }
}
