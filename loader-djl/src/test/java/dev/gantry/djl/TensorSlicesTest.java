// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.core.Linear;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The slices of tensors that belong to one rank.
@ExtendWith(NoLeaks.class)
class TensorSlicesTest {
  @TempDir private Path folder;
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager(Device.cpu());
  }

  @AfterEach
  void close() {
    manager.close();
  }

  private static double[] values(int count) {
    return DoubleStream.iterate(0, value -> value + 1).limit(count).toArray();
  }

  private static LoadOptions.Builder rank(TensorSelection.Slices slices, int rank, int world) {
    return LoadOptions.builder().optSlices(slices, rank, world);
  }

  @Test
  void theRanksPartsTogetherAreTheTensor() throws IOException {
    for (int seed = 0; seed < 20; seed++) {
      Random random = new Random(seed);
      int world = 1 + random.nextInt(4);
      WeightsFile file = new WeightsFile();
      TensorSelection.Slices.Builder slices = TensorSelection.slices();
      List<Integer> axes = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        int rank = 1 + random.nextInt(4);
        int axis = random.nextInt(rank);
        long[] shape = new long[rank];
        for (int dimension = 0; dimension < rank; dimension++) {
          shape[dimension] = (1L + random.nextInt(5)) * (dimension == axis ? world : 1);
        }
        DType dtype = random.nextBoolean() ? DType.F32 : DType.I64;
        long elements = TensorShape.of(shape).elements().orElseThrow();
        file.tensor("t" + i, dtype, TensorShape.of(shape), values((int) elements));
        slices.along("t" + i, axis);
        axes.add(axis);
      }
      file.vector("whole", DType.F32, values(7));
      Path path = file.write(folder.resolve("slices" + seed + ".safetensors"));
      try (Weights weights = Weights.open(path);
          NDManager own = manager.newSubManager()) {
        NDList whole = weights.load(own);
        List<NDList> parts = new ArrayList<>();
        for (int rank = 0; rank < world; rank++) {
          LoadOptions options = rank(slices.build(), rank, world).build();
          parts.add(weights.load(own, options));
        }
        for (int i = 0; i < axes.size(); i++) {
          NDList pieces = new NDList();
          for (NDList part : parts) {
            pieces.add(part.get(i));
          }
          NDArray joined = ai.djl.ndarray.NDArrays.concat(pieces, axes.get(i));
          assertThat(joined.getShape()).isEqualTo(whole.get(i).getShape());
          assertThat(joined.toByteArray())
              .as("seed %s, tensor %s, axis %s of %s", seed, i, axes.get(i), world)
              .isEqualTo(whole.get(i).toByteArray());
        }
        for (NDList part : parts) {
          assertThat(part.get(6).toFloatArray()).isEqualTo(whole.get(6).toFloatArray());
        }
      }
    }
  }

  @Test
  void aFusedTensorGivesAPieceOfEachPart() throws IOException {
    Path path =
        new WeightsFile()
            .tensor("qkv", DType.F32, TensorShape.of(12, 2), values(24))
            .tensor("grouped", DType.F32, TensorShape.of(2, 12), values(24))
            .write(folder.resolve("fused.safetensors"));
    TensorSelection.Slices slices =
        TensorSelection.slices().along("qkv", 0, 1, 1, 1).along("grouped", 1, 4, 1, 1).build();
    try (Weights weights = Weights.open(path)) {
      NDList second = weights.load(manager, rank(slices, 1, 2).build());
      assertThat(second.get("qkv").getShape()).isEqualTo(new Shape(6, 2));
      assertThat(second.get("qkv").toFloatArray())
          .containsExactly(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23);
      assertThat(second.get("grouped").toFloatArray())
          .containsExactly(4, 5, 6, 7, 9, 11, 16, 17, 18, 19, 21, 23);
      NDList first = weights.load(manager, rank(slices, 0, 2).optCast(DataType.FLOAT64).build());
      assertThat(first.get("grouped").toDoubleArray())
          .containsExactly(0, 1, 2, 3, 8, 10, 12, 13, 14, 15, 20, 22);
      NDList lazy = weights.load(manager, rank(slices, 1, 2).optLazy(true).build());
      assertThat(lazy.get("grouped").toFloatArray())
          .isEqualTo(second.get("grouped").toFloatArray());
      LoadOptions row =
          rank(slices, 1, 2)
              .optSelection(TensorSelection.all().rows("grouped", 1, 2).rows("qkv", 1, 5))
              .build();
      NDList rows = weights.load(manager, row);
      assertThat(rows.get("grouped").toFloatArray()).containsExactly(16, 17, 18, 19, 21, 23);
      assertThat(rows.get("qkv").toFloatArray()).containsExactly(6, 7, 12, 13, 14, 15, 20, 21);
      NDArray there = manager.zeros(new Shape(2, 6));
      weights.copyTo(java.util.Map.of("grouped", there), rank(slices, 1, 2).build());
      assertThat(there.toFloatArray()).isEqualTo(second.get("grouped").toFloatArray());
    }
  }

  @Test
  void aBlockOfTheRanksShapeTakesItsPart() throws IOException {
    Path path =
        new WeightsFile()
            .tensor("linear.weight", DType.F32, TensorShape.of(6, 4), values(24))
            .vector("linear.bias", DType.F32, values(6))
            .write(folder.resolve("block.safetensors"));
    TensorSelection.Slices columns = TensorSelection.slices().along("linear.weight", 1).build();
    ParameterNames names = ParameterNames.builder().rule("{name}", "linear.{name}").build();
    Linear block = Linear.builder().setUnits(6).build();
    try (Weights weights = Weights.open(path)) {
      weights.load(manager, block, names, rank(columns, 1, 2).build(), new Shape(1, 2));
      assertThat(block.getDirectParameters().get("weight").getArray().toFloatArray())
          .containsExactly(2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23);
    }
  }

  @Test
  void onlyTheRanksBytesAreReadWhereRowsAreLong() throws IOException {
    int columns = 200_000;
    Path path =
        new WeightsFile()
            .tensor("t", DType.F32, TensorShape.of(3, columns), values(3 * columns))
            .write(folder.resolve("long.safetensors"));
    AtomicReference<TransferReport> report = new AtomicReference<>();
    TensorSelection.Slices slices = TensorSelection.slices().along("t", 1).build();
    try (Weights weights = Weights.open(path)) {
      weights.load(manager, rank(slices, 1, 4).optReport(report::set).build());
    }
    assertThat(report.get().bytes()).isBetween(3L * columns, 3L * columns + 3 * 8192);
  }

  @Test
  void whatDoesNotDivideOrIsNotThereIsRefused() throws IOException {
    Path path =
        new WeightsFile()
            .tensor("t", DType.F32, TensorShape.of(6, 5), values(30))
            .tensor("q", DType.I8, TensorShape.of(4, 4), values(16))
            .tensor("q_scale", DType.F32, TensorShape.of(4, 1), values(4))
            .write(folder.resolve("wrong.safetensors"));
    try (Weights weights = Weights.open(path)) {
      refused(
          weights,
          TensorSelection.slices().along("t", 1),
          "'t' has shape",
          "axis 1 of 5",
          "2 ranks");
      refused(weights, TensorSelection.slices().along("t", 2), "'t' has shape", "no axis 2");
      refused(weights, TensorSelection.slices().along("u", 0), "'u'", "no tensor");
      refused(weights, TensorSelection.slices().along("t", 0, 1, 1), "in parts as [1, 1]");
      LoadOptions cast =
          rank(TensorSelection.slices().along("q", 0).build(), 0, 2)
              .optCast(DataType.FLOAT32)
              .build();
      assertThatThrownBy(() ->
              weights.load(
                  manager, Placement.sliced(TensorSelection.slices().build(), Device.cpu()), cast))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("takes no optSlices");
    }
    assertThatThrownBy(() -> rank(TensorSelection.slices().build(), 2, 2))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("rank of optSlices must be 0 to 1 (was 2)");
  }

  private void refused(Weights weights, TensorSelection.Slices.Builder slices, String... parts) {
    LoadOptions options = rank(slices.build(), 0, 2).build();
    assertThatThrownBy(() -> weights.load(manager, options))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll(parts);
  }

  @Test
  void oneDeviceIsTheOnlyRank() throws IOException {
    checkRanks(List.of(Device.cpu()));
  }

  @Test
  @Tag("gpu")
  void severalDevicesAreTheRanks() throws IOException {
    int gpus = Engine.getInstance().getGpuCount();
    Assumptions.assumeTrue(gpus > 0, "needs DJL on CUDA");
    checkRanks(List.of(Device.cpu(), Device.gpu(0)));
    if (gpus > 1) {
      checkRanks(List.of(Device.gpu(1), Device.gpu(0)));
    }
  }

  private void checkRanks(List<Device> devices) throws IOException {
    Path path =
        new WeightsFile()
            .tensor("columns", DType.F32, TensorShape.of(30, 40), values(1200))
            .tensor("rows", DType.BF16, TensorShape.of(20, 33), values(660))
            .vector("norm", DType.F32, values(33))
            .write(folder.resolve("ranks" + devices.size() + ".safetensors"));
    TensorSelection.Slices slices =
        TensorSelection.slices().along("columns", 1).along("rows", 0).build();
    try (Weights weights = Weights.open(path)) {
      for (LoadOptions.Builder options :
          List.of(
              LoadOptions.builder(),
              LoadOptions.builder().optCast(DataType.FLOAT32).slabBytes(4096))) {
        List<NDList> ranks =
            weights.load(
                manager, Placement.sliced(slices, devices.toArray(Device[]::new)), options.build());
        for (int rank = 0; rank < devices.size(); rank++) {
          NDList alone =
              weights.load(manager, options.optSlices(slices, rank, devices.size()).build());
          for (int i = 0; i < alone.size(); i++) {
            assertThat(ranks.get(rank).get(i).getDevice()).isEqualTo(devices.get(rank));
            assertThat(ranks.get(rank).get(i).toByteArray()).isEqualTo(alone.get(i).toByteArray());
          }
        }
      }
    }
  }
}
