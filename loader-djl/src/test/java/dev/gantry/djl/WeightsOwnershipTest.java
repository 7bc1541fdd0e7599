// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Memory lives as long as an array can read it, and no longer.
@ExtendWith(NoLeaks.class)
class WeightsOwnershipTest {
  @TempDir private Path folder;
  private Path file;

  @BeforeEach
  void write() throws IOException {
    file =
        new WeightsFile()
            .vector("f", DType.F32, 1, 2, 3, 4)
            .vector("b", DType.BF16, 5, 6, 7)
            .vector("i", DType.I64, 8, 9)
            .write(folder.resolve("three.safetensors"));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aViewOutlivesParentListCheckpointAndSession(boolean lazy) {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray view;
      try (GantrySession session = GantrySession.open();
          Weights weights = Weights.open(file, session);
          NDList list = weights.load(manager, Machine.loadOptions(lazy).build())) {
        NDArray parent = list.get("f");
        view = parent.get(new NDIndex("1:3"));
        parent.close();
      }
      assertThat(NoLeaks.held().slabs()).isEqualTo(1);
      // The check comes before values are read, because DJL leaves a copy with the manager when it
      // reads a GPU's array.
      assertThat(manager.getManagedArrays()).containsExactly(view);
      assertThat(view.toFloatArray()).containsExactly(2, 3);
      assertThat(view.sum().getFloat()).isEqualTo(5);
      view.close();
      NoLeaks.assertNothingIsHeld();
    }
  }

  @Test
  void aViewOfAViewHoldsTheMemoryToo() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDList list = load(manager);
      NDArray first = list.get("b").reshape(3, 1);
      NDArray second = first.transpose();
      first.close();
      list.close();
      assertThat(second.toFloatArray()).containsExactly(5, 6, 7);
      second.close();
      NoLeaks.assertNothingIsHeld();
    }
  }

  @Test
  void closingTheManagerFreesEverything() {
    NDManager manager = NDManager.newBaseManager();
    NDList list = load(manager);
    NDArray view = list.get("f").get(new NDIndex("2:"));
    assertThat(NoLeaks.held().slabs()).isPositive();
    manager.close();
    NoLeaks.assertNothingIsHeld();
    assertThat(list).allMatch(NDArray::isReleased);
    assertThat(view.isReleased()).isTrue();
  }

  @Test
  void closingTwiceDoesNoHarm() {
    NDManager manager = NDManager.newBaseManager();
    Weights weights = Weights.open(file);
    NDList list = weights.load(manager);
    NDArray kept = list.get("i");
    list.get("f").close();
    list.get("f").close();
    list.get("b").close();
    assertThat(kept.toLongArray()).containsExactly(8, 9);
    list.close();
    list.close();
    kept.close();
    NoLeaks.assertNothingIsHeld();
    weights.close();
    weights.close();
    manager.close();
    manager.close();
  }

  @Test
  void aSubManagerFreesItsOwnOnly() {
    NDManager manager = NDManager.newBaseManager();
    NDList outer = load(manager);
    LiveResources.Snapshot outerOnly = NoLeaks.held();
    NDManager below = manager.newSubManager();
    NDList inner = load(below);
    assertThat(NoLeaks.held().slabs()).isEqualTo(2 * outerOnly.slabs());
    below.close();
    assertThat(NoLeaks.held()).isEqualTo(outerOnly);
    assertThat(inner).allMatch(NDArray::isReleased);
    assertThat(outer.get("f").toFloatArray()).containsExactly(1, 2, 3, 4);
    NDList last = load(manager.newSubManager());
    manager.close();
    assertThat(last).allMatch(NDArray::isReleased);
  }

  @Test
  void anArrayThatMovedToAnotherManagerOutlivesTheFirst() {
    try (NDManager second = NDManager.newBaseManager()) {
      NDArray moved;
      try (NDManager first = NDManager.newBaseManager()) {
        moved = load(first).get("b");
        moved.attach(second);
      }
      assertThat(NoLeaks.held().slabs()).isEqualTo(1);
      assertThat(moved.getManager()).isSameAs(second);
      assertThat(moved.toFloatArray()).containsExactly(5, 6, 7);
      assertThat(moved.add(1).getManager()).isSameAs(second);
    }
  }

  @Test
  void anArrayThatNobodyManagesIsItsHoldersToClose() {
    NDArray loose;
    try (NDManager manager = NDManager.newBaseManager()) {
      loose = load(manager).get("f");
      loose.detach();
    }
    assertThat(loose.toFloatArray()).containsExactly(1, 2, 3, 4);
    loose.close();
    NoLeaks.assertNothingIsHeld();
  }

  /// Adjacent tensors that share an allocation keep all of it until the last of them is closed.
  @Test
  void neighboursShareASlabThatGoesWithTheLast() throws IOException {
    Path two =
        new WeightsFile()
            .raw("a", DType.U8, TensorShape.of(5000), new byte[5000])
            .raw("b", DType.U8, TensorShape.of(5000), new byte[5000])
            .write(folder.resolve("two.safetensors"));
    try (NDManager manager = NDManager.newBaseManager()) {
      NDList list = Weights.open(two).load(manager);
      long held = NoLeaks.heldBytes();
      assertThat(held).isBetween(10_000L, 10_000L + 2 * PlanLimits.BLOCK_BYTES);
      list.get("a").close();
      assertThat(NoLeaks.heldBytes()).isEqualTo(held);
      list.get("b").close();
      NoLeaks.assertNothingIsHeld();
    }
  }

  private NDList load(NDManager manager) {
    try (Weights weights = Weights.open(file)) {
      return weights.load(manager);
    }
  }
}
