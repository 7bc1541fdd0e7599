// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.models.spi.CausalBlock;
import dev.gantry.models.spi.KeyValueCache;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class KeyValueCacheTest {
  private static NDArray tokens(NDManager manager, int from, int count) {
    NDArray numbers = manager.arange(from, from + count, 1, DataType.FLOAT32);
    return numbers.reshape(1, 1, count, 1).broadcast(new Shape(2, 3, count, 4)).duplicate();
  }

  private static NDList append(KeyValueCache cache, NDManager pass, int from, int count) {
    NDArray keys = tokens(pass, from, count);
    NDList first = cache.append(0, keys, keys.neg());
    NDList second = cache.append(1, keys.mul(2), keys);
    return new NDList(first.get(0), first.get(1), second.get(0), second.get(1));
  }

  private static void requireTokens(NDManager manager, NDList held, int count) {
    NDArray all = tokens(manager, 0, count);
    List<NDArray> expected = List.of(all, all.neg(), all.mul(2), all);
    for (int i = 0; i < expected.size(); i++) {
      assertThat(held.get(i)).isEqualTo(expected.get(i));
    }
  }

  @Test
  void itGrowsAndHoldsAllTokens() {
    try (NDManager manager = NDManager.newBaseManager();
        KeyValueCache cache = new KeyValueCache(manager)) {
      assertThat(cache.length()).isZero();
      int length = 0;
      for (int count : new int[] {1, 40, 60, 1, 200, 7}) {
        try (NDManager pass = manager.newSubManager();
            NDScope scope = new NDScope()) {
          scope.suppressNotUsedWarning();
          NDList held = append(cache, pass, length, count);
          length += count;
          requireTokens(pass, held, length);
          assertThat(cache.length()).isEqualTo(length);
        }
        // Keys and values of two layers: those that became too small are freed.
        assertThat(manager.getManagedArrays()).hasSize(4);
      }
    }
  }

  @Test
  void closingFreesItsArraysAndNoOthers() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray other = manager.zeros(new Shape(1));
      try (KeyValueCache cache = new KeyValueCache(manager, 0, 3)) {
        try (NDManager pass = manager.newSubManager();
            NDScope scope = new NDScope()) {
          scope.suppressNotUsedWarning();
          append(cache, pass, 0, 4);
        }
        // The batch's padding, and keys and values of two layers.
        assertThat(manager.getManagedArrays()).hasSize(6).contains(other);
      }
      assertThat(manager.getManagedArrays()).containsExactly(other);
    }
  }

  @Test
  void tokensAreForgottenFromTheEnd() {
    try (NDManager manager = NDManager.newBaseManager();
        KeyValueCache cache = new KeyValueCache(manager)) {
      append(cache, manager, 0, 5);
      append(cache, manager, 90, 5);
      cache.truncate(5);
      requireTokens(manager, append(cache, manager, 5, 2), 7);
      assertThatThrownBy(() -> cache.truncate(8))
          .isInstanceOf(MisuseException.class)
          .hasMessage("length of a cache to keep must be 0 to 7 (was 8)");
    }
  }

  @Test
  void tokensAreWrittenIntoRoomThatIsThereAlready() {
    try (NDManager manager = NDManager.newBaseManager();
        KeyValueCache cache = new KeyValueCache(manager)) {
      cache.reserve(100);
      NDList before = append(cache, manager, 0, 5);
      NDList after = append(cache, manager, 5, 95);
      // A view of the same memory sees what is written into it.
      after.get(0).set(new NDIndex(":, :, 0:1"), 77);
      assertThat(before.get(0).getFloat(0, 0, 0, 0)).isEqualTo(77);
      NDList grown = append(cache, manager, 100, 1);
      grown.get(0).set(new NDIndex(":, :, 0:1"), 78);
      assertThat(NDArrays.contentEquals(before.get(0), grown.get(0).get(":, :, 0:5"))).isFalse();
    }
  }

  @Test
  void paddingBeforeATextIsHiddenAndHasNoPosition() {
    try (NDManager manager = NDManager.newBaseManager();
        KeyValueCache cache = new KeyValueCache(manager, 0, 3)) {
      assertThat(cache.positions()).containsExactly(0, -3);
      append(cache, manager, 0, 4);
      assertThat(cache.positions()).containsExactly(4, 1);
      NDArray mask = cache.mask(manager, 5);
      assertThat(mask).isNotNull();
      assertThat(mask.toBooleanArray())
          .containsExactly(true, true, true, true, true, false, false, false, true, true);
    }
  }

  /// A store that fails in a layer, as when a GPU's memory is at its end.
  private static final class Failing extends ParameterStore {
    private final String layer;

    Failing(NDManager manager, String layer) {
      super(manager, false);
      this.layer = layer;
    }

    @Override
    public NDArray getValue(Parameter parameter, Device device, boolean training) {
      if (parameter.getName().startsWith(layer)) {
        throw new IllegalStateException("no memory");
      }
      return super.getValue(parameter, device, training);
    }
  }

  /// A block some of whose passes fail in the second layer.
  private static CausalBlock failing(CausalBlock whole, Set<Integer> failing) {
    AtomicInteger passes = new AtomicInteger();
    return (CausalBlock)
        Proxy.newProxyInstance(
            CausalBlock.class.getClassLoader(),
            new Class<?>[] {CausalBlock.class},
            (_, method, arguments) -> {
              if (method.getName().equals("nextScores")
                  && failing.contains(passes.getAndIncrement())) {
                NDArray ids = (NDArray) arguments[1];
                return whole.nextScores(
                    new Failing(ids.getManager(), "layer1_"), ids, (KeyValueCache) arguments[2]);
              }
              return method.invoke(whole, arguments);
            });
  }

  @Test
  void aPromptWhosePassFailedInALayerIsFedAgain() {
    TextGenerator generator = TextGenerator.builder().optMaxTokens(4).build();
    long[] first = {1, 2, 3, 4, 5};
    long[] second = {1, 2, 3, 9, 8, 7, 6};
    try (Model model =
        HubModel.of(HubModelTest.HUB.resolve("llama")).load(Device.cpu(), LoadOptions.defaults())) {
      List<long[]> alone =
          List.of(generator.generate(model, first), generator.generate(model, second));
      Block whole = model.getBlock();
      model.setBlock(failing((CausalBlock) whole, Set.of(0, 5)));
      try (TextSession session = generator.session(model)) {
        assertThatThrownBy(() -> session.generate(first)).hasMessage("no memory");
        assertThat(session.generate(first)).isEqualTo(alone.get(0));
        assertThatThrownBy(() -> session.generate(second)).hasMessage("no memory");
        assertThat(session.generate(second)).isEqualTo(alone.get(1));
      }
    }
  }
}
