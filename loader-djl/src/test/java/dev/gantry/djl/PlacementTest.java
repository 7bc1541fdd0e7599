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
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Loads of the same tensors onto several devices.
@ExtendWith(NoLeaks.class)
class PlacementTest {
  private static final List<Device> CPU = List.of(Device.cpu());

  @TempDir private Path folder;
  private NDManager manager;
  private Path file;

  @BeforeEach
  void write() throws IOException {
    manager = NDManager.newBaseManager();
    file =
        new WeightsFile()
            .tensor("matrix", DType.F32, TensorShape.of(30, 20), values(600))
            .vector("halves", DType.BF16, values(3000))
            .vector("counts", DType.I32, values(77))
            .tensor("quantised", DType.I8, TensorShape.of(4, 8), values(32))
            .tensor("quantised_scale", DType.F32, TensorShape.of(4, 1), values(4))
            .vector("none", DType.F32)
            .write(folder.resolve("weights.safetensors"));
  }

  @AfterEach
  void close() {
    manager.close();
  }

  private static double[] values(int count) {
    return DoubleStream.iterate(1, value -> value + 1)
        .map(value -> value % 100)
        .limit(count)
        .toArray();
  }

  private static Placement on(List<Device> devices) {
    return Placement.replicated(devices.toArray(Device[]::new));
  }

  private void check(List<Device> devices, LoadOptions.Builder options) {
    try (Weights weights = Weights.open(file)) {
      List<NDList> each = weights.load(manager, on(devices), options.build());
      assertThat(each).hasSameSizeAs(devices);
      List<NDList> alone = new ArrayList<>();
      for (Device device : devices) {
        LoadOptions one = options.optDevice(device).build();
        alone.add(weights.load(manager, one));
      }
      for (int i = 0; i < devices.size(); i++) {
        NDList expected = alone.get(i);
        NDList actual = each.get(i);
        assertThat(actual.stream().map(NDArray::getName))
            .containsExactlyElementsOf(expected.stream().map(NDArray::getName).toList());
        for (int tensor = 0; tensor < expected.size(); tensor++) {
          assertThat(actual.get(tensor).getDevice()).isEqualTo(devices.get(i));
          assertThat(actual.get(tensor).getShape()).isEqualTo(expected.get(tensor).getShape());
          assertThat(actual.get(tensor).toByteArray())
              .isEqualTo(expected.get(tensor).toByteArray());
        }
        actual.close();
        expected.close();
      }
    }
  }

  @Test
  void oneDeviceGetsWhatALoadGives() {
    check(CPU, LoadOptions.builder());
    check(CPU, LoadOptions.builder().optCast(DataType.FLOAT32));
    check(CPU, LoadOptions.builder().optCast(DataType.FLOAT32).slabBytes(4096));
  }

  @Test
  @Tag("gpu")
  void severalDevicesGetWhatALoadGives() {
    int gpus = Engine.getInstance().getGpuCount();
    Assumptions.assumeTrue(gpus > 0, "needs DJL on CUDA");
    for (List<Device> devices :
        List.of(
            List.of(Device.cpu(), Device.gpu(0)),
            List.of(Device.gpu(gpus - 1)),
            gpus > 1 ? List.of(Device.gpu(0), Device.gpu(1)) : List.of(Device.gpu(0)))) {
      check(devices, LoadOptions.builder());
      check(devices, LoadOptions.builder().optCast(DataType.FLOAT32));
      check(devices, LoadOptions.builder().optCast(DataType.FLOAT32).slabBytes(4096));
    }
  }

  @Test
  void theOptionsThatNameADeviceOrReadNothingAreRefused() {
    try (Weights weights = Weights.open(file)) {
      for (LoadOptions options :
          List.of(
              LoadOptions.builder().optDevice(Device.cpu()).build(),
              LoadOptions.builder().optLazy(true).build())) {
        assertThatThrownBy(() -> weights.load(manager, on(CPU), options))
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining("takes no optLazy or optDevice");
      }
      assertThatThrownBy(
              () -> weights.load(manager, Placement.replicated(Device.cpu(), Device.cpu())))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("[host, host]");
      assertThatThrownBy(() -> weights.load(manager, Placement.replicated()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("must name one device or more (was none)");
    }
  }
}
