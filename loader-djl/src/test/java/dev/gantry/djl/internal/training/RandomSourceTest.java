// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.util.RandomUtils;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.Releases;
import dev.gantry.djl.internal.torch.Torch;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RandomSourceTest {
  private static final RandomSource TORCH =
      new RandomSource.TorchRandom(Torch.LIBRARY, Device.HOST);
  private static final RandomSource JAVA = new RandomSource.JavaRandom();

  @AfterEach
  void nothingIsLeftBehind() {
    assertThat(Releases.pending()).isZero();
  }

  @Test
  void torchGoesOnFromWhatWasSaved() {
    assertGoesOn(TORCH, RandomSourceTest::torchNumbers);
  }

  @Test
  void javaGoesOnFromWhatWasSaved() {
    assertGoesOn(
        JAVA, () -> IntStream.range(0, 20).mapToObj(_ -> RandomUtils.nextInt(1000)).toList());
    assertGoesOn(JAVA, () -> List.of(RandomUtils.random(), RandomUtils.nextFloat()));
  }

  @Test
  void everyStateThatTorchComesToIsOne() {
    Training.seed(5);
    try (NDManager manager = NDManager.newBaseManager(ai.djl.Device.cpu())) {
      for (int drawn = 0; drawn < 1300; drawn++) {
        String state = TORCH.state();
        TORCH.restore(state);
        assertThat(TORCH.state()).isEqualTo(state);
        manager.randomUniform(0, 1, new Shape(1)).close();
      }
    }
  }

  @Test
  void savingDrawsNothing() {
    Training.seed(3);
    List<Float> expected = torchNumbers();
    int expectedInt = RandomUtils.nextInt();
    Training.seed(3);
    String first = TORCH.state();
    assertThat(TORCH.state()).isEqualTo(first);
    assertThat(JAVA.state()).isEqualTo(JAVA.state());
    assertThat(torchNumbers()).isEqualTo(expected);
    assertThat(TORCH.state()).isNotEqualTo(first);
    assertThat(RandomUtils.nextInt()).isEqualTo(expectedInt);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "no base 64", "AAAA", "AAAAAAAAAAA=", "/////////////////////w=="})
  void refusesWhatIsNoState(String saved) {
    String before = TORCH.state();
    assertThatThrownBy(() -> TORCH.restore(saved))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("torch/host");
    assertThat(TORCH.state()).isEqualTo(before);
  }

  /// Each of these states would end the process if libtorch got it.
  @ParameterizedTest
  @CsvSource({"8, 0", "8, 625", "8, -1", "8, 600", "12, 0", "16, 600", "16, 625", "16, -1"})
  void refusesATwisterThatCannotBe(int offset, int value) {
    String before = TORCH.state();
    ByteBuffer bytes =
        ByteBuffer.wrap(Base64.getDecoder().decode(before)).order(ByteOrder.nativeOrder());
    bytes.putInt(offset, value);
    assertThatThrownBy(() -> TORCH.restore(Base64.getEncoder().encodeToString(bytes.array())))
        .isInstanceOf(MisuseException.class);
    assertThat(TORCH.state()).isEqualTo(before);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "AAAA", "//////////8="})
  void javaRefusesWhatIsNoState(String saved) {
    String before = JAVA.state();
    assertThatThrownBy(() -> JAVA.restore(saved))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("java");
    assertThat(JAVA.state()).isEqualTo(before);
  }

  @Test
  void aLibtorchForTheCpuHasNoGeneratorOfAGpu() {
    assumeTrue(Engine.getInstance().getGpuCount() == 0);
    RandomSource cuda = new RandomSource.TorchRandom(Torch.LIBRARY, new Device.Cuda(0));
    assertThat(cuda.absence()).hasValueSatisfying(reason -> assertThat(reason).contains("CUDA"));
    assertThatThrownBy(() -> cuda.restore(TORCH.state()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("torch/cuda:0");
  }

  private static <T> void assertGoesOn(RandomSource source, Supplier<T> draw) {
    T first = draw.get();
    String saved = source.state();
    T expected = draw.get();
    assertThat(expected).isNotEqualTo(first);
    Training.seed(17);
    source.restore(saved);
    assertThat(draw.get()).isEqualTo(expected);
  }

  /// Returns a uniform and a normal number of libtorch's generator. The generator also keeps one
  /// normal number that it has drawn in advance.
  private static List<Float> torchNumbers() {
    try (NDManager manager = NDManager.newBaseManager(ai.djl.Device.cpu())) {
      float uniform = manager.randomUniform(0, 1, new Shape(3)).toFloatArray()[2];
      float normal = manager.randomNormal(new Shape(1)).getFloat();
      return List.of(uniform, normal);
    }
  }
}
