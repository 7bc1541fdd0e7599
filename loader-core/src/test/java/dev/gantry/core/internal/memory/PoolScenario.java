// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.schedules.Points;
import dev.gantry.testing.schedules.Scenario;
import java.util.List;

/// Two threads keep items in a pool that has space for one, and take them again, while a third
/// thread frees idle items. Each item is taken or freed exactly once.
final class PoolScenario implements Scenario {
  private static final long SIZE = 6;

  /// How often each item was taken for good or freed. The explorer does not switch threads at
  /// accesses to array elements.
  private final int[] ended = new int[2];

  private final Pool<Integer> pool =
      new Pool<>(LiveResources.Kind.HOST_BYTES, -1, () -> SIZE, thing -> ended[thing]++);

  @Override
  public List<Work> threads() {
    return List.of(() -> use(0), () -> use(1), Points::look);
  }

  private void use(int thing) {
    pool.keep(thing, SIZE);
    Integer taken = pool.take(SIZE);
    if (taken != null) {
      ended[taken]++;
    }
  }

  @Override
  public void check() {
    pool.free();
    assertThat(ended).containsExactly(1, 1);
    assertThat(pool.size()).isZero();
    assertThat(LiveResources.snapshot().hostBytes()).isZero();
  }
}
