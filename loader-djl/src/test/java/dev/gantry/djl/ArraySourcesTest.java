// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// NDArrays as the sources of weights and shards that are written.
@ExtendWith(NoLeaks.class)
class ArraySourcesTest {
  @TempDir private Path folder;
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
  }

  @AfterEach
  void close() {
    manager.close();
  }

  @Test
  void arraysAreWrittenAsTensorsOfACheckpoint() throws IOException {
    Path first =
        new WeightsFile()
            .vector("half", DType.BF16, 1, -2.5)
            .write(folder.resolve("first.safetensors"));
    NDList arrays = Weights.open(first).load(manager);
    NDArray transposed = manager.arange(6f).reshape(2, 3).transpose();
    transposed.setName("transposed");
    arrays.add(transposed);
    Path second = folder.resolve("second.safetensors");
    try (ArraySources sources = ArraySources.of(arrays)) {
      // The sources keep the arrays' memory.
      arrays.forEach(NDArray::close);
      var _ =
          NewSafetensors.file(second, sources.tensors(), Map.of("by", "a test"))
              .write(GantrySession.shared(), WriteOptions.defaults());
    }
    try (Weights written = Weights.open(second)) {
      assertThat(written.metadata()).isEqualTo(Map.of("by", "a test"));
      assertThat(written.tensors().get("half").dtype()).isEqualTo(DType.BF16);
      NDList read = written.load(manager);
      assertThat(read.get("half").toFloatArray()).containsExactly(1, -2.5f);
      assertThat(read.get("transposed").getShape()).isEqualTo(new Shape(3, 2));
      assertThat(read.get("transposed").toFloatArray()).containsExactly(0, 3, 1, 4, 2, 5);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void arraysAreWrittenAsSamples(boolean atOnce) {
    NDArray images = manager.arange(24f).reshape(4, 2, 3);
    NDArray labels = manager.arange(4f).toType(DataType.INT64, true);
    Path shards = folder.resolve("shards");
    try (ArraySources sources = ArraySources.of(Map.of("image", images, "label", labels))) {
      assertThat(sources.samples()).isEqualTo(4);
      if (atOnce) {
        var _ =
            ShardWriter.write(
                GantrySession.shared(),
                shards,
                sources.fields(),
                sources.samples(),
                sources.values(),
                ShardOptions.defaults());
      } else {
        try (ShardWriter writer =
            ShardWriter.create(
                GantrySession.shared(), shards, sources.fields(), ShardOptions.defaults())) {
          writer.append(sources.samples(), sources.values());
          var _ = writer.finish();
        }
      }
    }
    try (ShardDataset dataset = ShardDataset.builder().setPath(shards).setSampling(4).build();
        Batch batch = dataset.getData(manager).iterator().next()) {
      assertThat(batch.getData().singletonOrThrow().getShape()).isEqualTo(new Shape(4, 2, 3));
      assertThat(batch.getData().singletonOrThrow().toFloatArray())
          .isEqualTo(images.toFloatArray());
      assertThat(batch.getLabels().singletonOrThrow().toLongArray()).containsExactly(0, 1, 2, 3);
    }
  }

  @Test
  void whatCannotBeWrittenIsRefused() {
    NDArray unnamed = manager.ones(new Shape(2));
    assertRefused("has no name", () -> ArraySources.of(new NDList(unnamed)));
    unnamed.setName("a");
    assertRefused("'a'", () -> ArraySources.of(new NDList(unnamed, unnamed)));
    try (ArraySources scalar = ArraySources.of(Map.of("s", manager.create(1f)))) {
      assertRefused("'s' is a scalar", scalar::fields);
      assertRefused("'s' is a scalar", scalar::samples);
    }
    NDList uneven = new NDList(unnamed, manager.ones(new Shape(3, 1)));
    uneven.get(1).setName("b");
    try (ArraySources sources = ArraySources.of(uneven)) {
      assertRefused("'b' has 3 samples, and 'a' 2", sources::samples);
    }
    assertRefused(
        "must be dense and of numbers",
        () -> ArraySources.of(Map.of("a", unnamed, "text", manager.create("text"))));
  }

  @Test
  void theArraysBeforeOneThatIsRefusedAreNotHeld() throws IOException {
    Path file =
        new WeightsFile().vector("ours", DType.F32, 1).write(folder.resolve("ours.safetensors"));
    try (Weights weights = Weights.open(file);
        NDList arrays = weights.load(manager)) {
      NDArray text = manager.create("text");
      text.setName("text");
      arrays.add(text);
      assertRefused("must be dense and of numbers", () -> ArraySources.of(arrays));
    }
    NoLeaks.assertNothingIsHeld();
  }

  private static void assertRefused(
      String message, org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(MisuseException.class).hasMessageContaining(message);
  }
}
