// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("jdk-files")
class SafetensorsOpenerTest {
  private static final String INDEX = "model.safetensors.index.json";

  @TempDir Path folder;

  private Path dataFile(String name, String... tensors) throws IOException {
    HandmadeSafetensors writer = new HandmadeSafetensors().metadata("from", name);
    for (String tensor : tensors) {
      writer.tensor(tensor, DType.U8, 2);
    }
    return writer.write(folder.resolve(name));
  }

  private Path index(String name, String weightMap) throws IOException {
    return Files.writeString(
        folder.resolve(name), ("{'weight_map':{" + weightMap + "}}").replace('\'', '"'));
  }

  private void assertRefused(Path path, String kind, String... named) {
    assertThatThrownBy(() -> SafetensorsOpener.open(GantrySession.shared(), path))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            refusal -> {
              assertThat(refusal.kind()).isEqualTo(kind);
              assertThat(refusal.getMessage()).contains(named).hasLineCount(1);
            });
  }

  @Test
  void aFileIsACheckpoint() throws IOException {
    Path file = dataFile("one.safetensors", "b", "a");
    WeightsCatalogue weights = SafetensorsOpener.open(GantrySession.shared(), file);
    assertThat(weights.tensors().keySet()).containsExactly("b", "a");
    assertThat(weights.files()).map(Location::path).containsExactly(file);
    assertThat(weights.metadata()).containsEntry("from", "one.safetensors");
    assertThat(weights.totalBytes()).isEqualTo(4);
  }

  @Test
  void aFolderIsAllItsFilesByName() throws IOException {
    Path two = dataFile("2.safetensors", "a");
    Path one = dataFile("1.safetensors", "c", "b");
    Files.createDirectory(folder.resolve("3.safetensors"));
    Files.writeString(folder.resolve("readme.txt"), "not a tensor");
    WeightsCatalogue weights = SafetensorsOpener.open(GantrySession.shared(), folder);
    assertThat(weights.files()).map(Location::path).containsExactly(one, two);
    assertThat(weights.tensors().keySet()).containsExactly("c", "b", "a");
    assertThat(weights.metadata()).containsEntry("from", "1.safetensors");
    assertThat(weights.totalBytes()).isEqualTo(6);
  }

  @Test
  void anIndexSaysWhichTensorsCount() throws IOException {
    Path one = dataFile("1.safetensors", "a", "unnamed");
    Path two = dataFile("2.safetensors", "b", "unnamed");
    dataFile("other.safetensors", "a");
    Path index = index(INDEX, "'b':'2.safetensors','a':'1.safetensors'");
    for (Path path : new Path[] {index, folder}) {
      WeightsCatalogue weights = SafetensorsOpener.open(GantrySession.shared(), path);
      assertThat(weights.files()).map(Location::path).containsExactly(one, two);
      assertThat(weights.tensors().keySet()).containsExactly("a", "b");
    }
  }

  @Test
  void theUsualIndexGoesBeforeOthersAndTheOnlyOneBeforeNone() throws IOException {
    dataFile("1.safetensors", "a", "b");
    index("variant.safetensors.index.json", "'b':'1.safetensors'");
    assertThat(SafetensorsOpener.open(GantrySession.shared(), folder).tensors())
        .containsOnlyKeys("b");
    index(INDEX, "'a':'1.safetensors'");
    assertThat(SafetensorsOpener.open(GantrySession.shared(), folder).tensors())
        .containsOnlyKeys("a");
  }

  /// The library that writes the hub's files also reads this name first.
  @Test
  void theUsualFileGoesBeforeAllElse() throws IOException {
    Path usual = dataFile("model.safetensors", "a");
    dataFile("other.safetensors", "a", "b");
    assertThat(SafetensorsOpener.open(GantrySession.shared(), folder).files())
        .map(Location::path)
        .containsExactly(usual);
    index(INDEX, "'b':'other.safetensors'");
    assertThat(SafetensorsOpener.open(GantrySession.shared(), folder).tensors())
        .containsOnlyKeys("a");
    index(INDEX, "'b':'none.safetensors'");
    assertThat(SafetensorsOpener.open(GantrySession.shared(), folder).tensors())
        .containsOnlyKeys("a");
  }

  @Test
  void severalIndexesWithoutTheUsualOneAreNotGuessedAt() throws IOException {
    dataFile("1.safetensors", "a");
    index("x.safetensors.index.json", "'a':'1.safetensors'");
    index("y.safetensors.index.json", "'a':'1.safetensors'");
    assertRefused(folder, "several-indexes", INDEX);
  }

  @Test
  void aFolderWithoutTensorsIsRefused() {
    assertRefused(folder, "no-safetensors", folder.toString());
  }

  /// Without the index only the names tell how many data files there must be: a writer that stopped
  /// early would otherwise pass for a smaller model.
  @Test
  void aFolderWithoutAnIndexNeedsAllOfItsNumberedFiles() throws IOException {
    dataFile("model-00001-of-00003.safetensors", "a");
    dataFile("model-00003-of-00003.safetensors", "c");
    dataFile("other-00001-of-00001.safetensors", "d");
    assertRefused(folder, "missing-data-files", "model-00001-of-00003", "only 2 of 3 data files");
    dataFile("model-00002-of-00003.safetensors", "b");
    assertThat(SafetensorsOpener.open(GantrySession.shared(), folder).tensors())
        .containsOnlyKeys("a", "b", "c", "d");
  }

  @Test
  void aMissingShardIsNamed() throws IOException {
    assertRefused(index(INDEX, "'a':'1.safetensors'"), "missing-shard", "1.safetensors", "'a'");
  }

  @Test
  void aDanglingLinkIsAMissingShard() throws IOException {
    Files.createSymbolicLink(folder.resolve("1.safetensors"), folder.resolve("gone"));
    assertRefused(index(INDEX, "'a':'1.safetensors'"), "missing-shard", "1.safetensors");
  }

  @Test
  void aDanglingLinkInAFolderWithoutAnIndexIsAnErrorAndNotLeftOut() throws IOException {
    dataFile("1.safetensors", "a");
    Path link = folder.resolve("2.safetensors");
    Files.createSymbolicLink(link, folder.resolve("gone"));
    assertThatThrownBy(() -> SafetensorsOpener.open(GantrySession.shared(), folder))
        .isInstanceOf(TransferException.class)
        .hasMessageStartingWith("open failed: " + link + ": errno 2 ENOENT");
  }

  @Test
  void aTensorThatItsShardLacksIsNamed() throws IOException {
    dataFile("1.safetensors", "a");
    assertRefused(
        index(INDEX, "'a':'1.safetensors','b':'1.safetensors'"), "tensor-not-in-shard", "'b'");
  }

  @Test
  void aTensorInTheOtherShardIsNamed() throws IOException {
    dataFile("1.safetensors", "a", "b");
    dataFile("2.safetensors", "c");
    assertRefused(
        index(INDEX, "'a':'1.safetensors','b':'2.safetensors','c':'2.safetensors'"),
        "tensor-not-in-shard",
        "'b'",
        "1.safetensors");
  }

  @Test
  void aTensorInTwoShardsIsNamed() throws IOException {
    dataFile("1.safetensors", "a", "b");
    dataFile("2.safetensors", "b", "c");
    assertRefused(folder, "tensor-in-two-shards", "'b'", "1.safetensors", "2.safetensors");
    assertRefused(
        index(INDEX, "'a':'1.safetensors','b':'2.safetensors','c':'2.safetensors'"),
        "tensor-in-two-shards",
        "'b'",
        "1.safetensors",
        "2.safetensors");
  }

  @Test
  void aMalformedShardIsRefusedByItsOwnName() throws IOException {
    dataFile("1.safetensors", "a");
    Path broken = Files.write(folder.resolve("2.safetensors"), new byte[3]);
    assertRefused(folder, "header-too-small", broken.toString());
  }

  @Test
  void aCheckpointThatIsNotThereSaysSo() {
    for (String name : new String[] {"none", "none.safetensors", "none.index.json"}) {
      assertThatThrownBy(() -> SafetensorsOpener.open(GantrySession.shared(), folder.resolve(name)))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOENT")
          .hasMessageContaining(name);
    }
  }

  @Test
  void theReferenceWritersShardsAreRead() {
    WeightsCatalogue weights =
        SafetensorsOpener.open(GantrySession.shared(), Path.of("src/test/resources/corpus/model"));
    assertThat(weights.files()).hasSize(3);
    assertThat(weights.tensors().keySet())
        .containsExactlyInAnyOrder(
            "fc1.bias",
            "fc1.weight",
            "fc2.bias",
            "fc2.weight",
            "head.bias",
            "head.weight",
            "steps_trained");
    assertThat(weights.totalBytes()).isEqualTo(59248);
  }

  @Test
  void theCatalogueCannotBeChanged() throws IOException {
    WeightsCatalogue weights =
        SafetensorsOpener.open(GantrySession.shared(), dataFile("1.safetensors", "a"));
    assertThatThrownBy(() -> weights.tensors().clear())
        .isInstanceOf(UnsupportedOperationException.class);
    assertThatThrownBy(() -> weights.metadata().clear())
        .isInstanceOf(UnsupportedOperationException.class);
    assertThatThrownBy(() -> weights.files().clear())
        .isInstanceOf(UnsupportedOperationException.class);
  }
}
