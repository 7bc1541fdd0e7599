// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.djl.internal.ndarray.FusedRows;
import dev.gantry.models.internal.blocks.Activations;
import dev.gantry.models.internal.blocks.Rotation;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// One launch gives what the operations one after the other give.
@Tag("gpu")
class FusedRowsGpuTest {
  private static double farthest(NDArray one, NDArray other) {
    return one.toType(DataType.FLOAT32, false)
        .sub(other.toType(DataType.FLOAT32, false))
        .abs()
        .max()
        .getFloat();
  }

  private static double tolerance(DataType type) {
    return type == DataType.FLOAT32 ? 1e-5 : 0.01;
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT16"})
  void aNormIsThatOfItsSteps(DataType type) {
    try (NDManager manager = NDManager.newBaseManager(Device.gpu())) {
      for (int width : List.of(1, 31, 64, 300, 4096)) {
        NDArray x = manager.randomNormal(new Shape(2, 3, width)).toType(type, false);
        NDArray scale = manager.randomNormal(new Shape(width)).toType(type, false);
        NDArray wide = x.toType(DataType.FLOAT32, false);
        NDArray root = wide.square().mean(new int[] {-1}, true).add(1e-6f).sqrt();
        NDArray plain = FusedRows.norm(x, scale, 1e-6, false).orElseThrow();
        NDArray plusOne = FusedRows.norm(x, scale, 1e-6, true).orElseThrow();
        assertThat(farthest(plain, wide.div(root).mul(scale.toType(DataType.FLOAT32, false))))
            .isLessThan(tolerance(type));
        assertThat(
                farthest(plusOne, wide.div(root).mul(scale.toType(DataType.FLOAT32, false).add(1))))
            .isLessThan(2 * tolerance(type));
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT16"})
  void aTurnIsThatOfItsSteps(DataType type) {
    try (NDManager manager = NDManager.newBaseManager(Device.gpu())) {
      for (int batches : List.of(1, 2)) {
        NDArray x = manager.randomNormal(new Shape(2, 5, 3, 16)).toType(type, false);
        NDArray cosines = manager.randomNormal(new Shape(batches, 1, 5, 6)).toType(type, false);
        NDArray sines = manager.randomNormal(new Shape(batches, 1, 5, 6)).toType(type, false);
        Rotation.Turn turn = new Rotation.Turn(cosines, sines);
        NDArray fused = FusedRows.turn(x, cosines, sines).orElseThrow().transpose(0, 2, 1, 3);
        assertThat(farthest(fused, turn.of(x, false))).isLessThan(tolerance(type));
      }
    }
  }

  @Test
  void aGateIsThatOfItsSteps() {
    try (NDManager manager = NDManager.newBaseManager(Device.gpu())) {
      NDArray x = manager.randomNormal(new Shape(2, 3, 100));
      NDArray by = manager.randomNormal(new Shape(2, 3, 100));
      NDArray fused = FusedRows.gate(x, by).orElseThrow();
      assertThat(farthest(fused, Activations.SILU.apply(x).mul(by))).isLessThan(1e-5);
    }
  }

  @Test
  void whatDoesNotLieEndToEndOrIsOnTheHostIsLeftToTheSteps() {
    try (NDManager host = NDManager.newBaseManager(Device.cpu());
        NDManager manager = NDManager.newBaseManager(Device.gpu())) {
      NDArray scale = manager.ones(new Shape(8));
      assertThat(FusedRows.norm(manager.ones(new Shape(8, 8)).transpose(), scale, 1, false))
          .isEmpty();
      NDArray own = host.ones(new Shape(8));
      assertThat(FusedRows.norm(own, own, 1, false)).isEmpty();
      assertThat(FusedRows.norm(scale, scale.toType(DataType.FLOAT64, false), 1, false)).isEmpty();
    }
  }
}
