// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Weights in another store than the local one.
@ExtendWith(NoLeaks.class)
class RemoteSafetensorsTest {
  private static final String INDEX =
      "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}";

  private final RangeServer server = new RangeServer();

  @AfterEach
  void close() {
    server.close();
  }

  private static Location putTwo(BiFunction<String, byte[], Location> put) {
    Location _ =
        put.apply(
            "one.safetensors", new HandmadeSafetensors().tensor("a", DType.F32, 100, 3).toBytes());
    Location _ =
        put.apply(
            "two.safetensors",
            new HandmadeSafetensors()
                .tensor("unwanted", DType.I8, 1000)
                .tensor("b", DType.I16, 50_001)
                .toBytes());
    return put.apply("model.safetensors.index.json", INDEX.getBytes(StandardCharsets.UTF_8));
  }

  private static void check(Location index) {
    WeightsCatalogue weights = WeightsFormats.open(GantrySession.shared(), index);
    assertThat(weights.tensors().keySet()).containsExactlyInAnyOrder("a", "b");
    List<StoredTensor> tensors = new ArrayList<>(weights.tensors().values());
    try (GantrySession session = GantrySession.open();
        LoadedTensors loaded =
            LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults())) {
      for (int i = 0; i < tensors.size(); i++) {
        Region region = loaded.regions().get(i);
        byte[] bytes = new byte[Math.toIntExact(region.length())];
        region.copyTo(MemorySegment.ofArray(bytes));
        byte fill = (byte) (tensors.get(i).name().equals("a") ? 0 : 1);
        assertThat(bytes).hasSize((int) tensors.get(i).bytes()).containsOnly(fill);
      }
      assertThat(loaded.report().files())
          .extracting(report -> report.file().toString())
          .containsExactlyInAnyOrder(
              index.sibling("one.safetensors").toString(),
              index.sibling("two.safetensors").toString());
    }
  }

  @Test
  void anIndexAndItsFilesAreReadOverHttp() {
    check(putTwo((name, bytes) -> server.put("repo/" + name, bytes)));
  }

  @Test
  void anIndexAndItsFilesAreReadFromAStoreOfTests() {
    check(putTwo((name, bytes) -> MemoryStore.put("repo/" + name, bytes)));
  }

  /// One request opens the file, and one reads its first window, which has the header. The search
  /// for the format and the reader of the header share both.
  @Test
  void aFileOfASmallHeaderTakesTwoRequestsToOpen() {
    Location file =
        server.put(
            "model.safetensors", new HandmadeSafetensors().tensor("a", DType.F32, 100).toBytes());
    server.answerAll(RangeServer.Answer.RIGHT);
    assertThat(WeightsFormats.open(GantrySession.shared(), file).tensors()).containsOnlyKeys("a");
    assertThat(server.requests()).isEqualTo(2);
  }

  /// Otherwise the header would belong to one version and the data to another.
  @Test
  void aFileThatChangesBetweenOpeningAndLoadingIsRefused() {
    Location file =
        server.put(
            "model.safetensors", new HandmadeSafetensors().tensor("a", DType.F32, 100).toBytes());
    List<StoredTensor> tensors =
        List.copyOf(WeightsFormats.open(GantrySession.shared(), file).tensors().values());
    server.answerAll(RangeServer.Answer.OTHER_ETAG);
    try (GantrySession session = GantrySession.open()) {
      assertThatThrownBy(
              () -> LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults()))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("model.safetensors")
          .hasMessageContaining("the file changed after its header was read");
    }
  }

  @Test
  void aDataFileThatIsNotThereIsNamed() {
    Location index =
        server.put("repo/model.safetensors.index.json", INDEX.getBytes(StandardCharsets.UTF_8));
    assertThatThrownBy(() -> WeightsFormats.open(GantrySession.shared(), index))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("repo/one.safetensors")
        .hasMessageContaining("status 404");
  }

  /// Hubs answer with a web page if there is no file.
  @Test
  void aPageIsNoWeights() {
    Location page =
        server.put("model.safetensors", "<html>Sign in</html>".getBytes(StandardCharsets.UTF_8));
    assertThatThrownBy(() -> WeightsFormats.open(GantrySession.shared(), page))
        .isInstanceOfSatisfying(
            MalformedFileException.class, e -> assertThat(e.file()).isEqualTo(page));
  }

  @Test
  void everyInvalidFileOfTheCorpusIsRefusedAsALocalOneIs() throws Exception {
    try (var files = Files.list(Path.of("src/test/resources/corpus/safetensors"))) {
      for (Path file : files.filter(path -> path.toString().endsWith(".safetensors")).toList()) {
        String name = Objects.requireNonNull(file.getFileName()).toString();
        Location remote = MemoryStore.put("corpus/" + name, Files.readAllBytes(file));
        assertThat(verdict(remote)).as(name).isEqualTo(verdict(Location.of(file)));
      }
    }
  }

  private static String verdict(Location file) {
    try {
      return SafetensorsHeader.read(GantrySession.shared(), file).tensors().keySet().toString();
    } catch (MalformedFileException e) {
      return e.kind() + " at " + e.offset() + ": " + e.detail();
    }
  }
}
