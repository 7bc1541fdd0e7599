// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.testing.schedules.Scenario;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Two loads use memory of two allocations, while the BAR window can register one of them, and a
/// session deregisters idle memory. Memory in use is registered, no memory is registered twice,
/// and no registration is left.
final class RegistrationScenario implements Scenario {
  private static final Device.Cuda GPU = new Device.Cuda(0);
  private static final long BYTES = 1 << 16;

  /// Which allocations are registered. The explorer does not switch threads at accesses to array
  /// elements.
  private final boolean[] registered = new boolean[2];

  private final RegistrationCache cache =
      new RegistrationCache(
          new RegistrationCache.Hardware() {
            @Override
            public Availability<Allocation> allocation(Device.Cuda device, long address) {
              return Availability.present(
                  new Allocation(address / BYTES * BYTES, BYTES, address / BYTES));
            }

            @Override
            public long id(Device.Cuda device, long address) {
              return address / BYTES;
            }

            @Override
            public long budgetBytes(Device.Cuda device) {
              return BYTES;
            }

            @Override
            public void register(Device.Cuda device, MemorySegment region) {
              int which = which(region.address());
              assertThat(registered[which]).as("registered twice").isFalse();
              assertThat(registered[1 - which]).as("past the budget").isFalse();
              registered[which] = true;
            }

            @Override
            public void deregister(Device.Cuda device, MemorySegment region) {
              int which = which(region.address());
              assertThat(registered[which]).as("not registered").isTrue();
              registered[which] = false;
            }
          });

  private static int which(long address) {
    return (int) (address / BYTES) - 1;
  }

  @Override
  public List<Work> threads() {
    return List.of(() -> load(1, 2), () -> load(2, 1), cache::clear);
  }

  private void load(int... allocations) {
    try (RegistrationCache.Load load = cache.begin()) {
      for (int each : allocations) {
        try (RegistrationCache.Use use = load.use(GPU, each * BYTES + 512, 1024)) {
          if (use.refusal().isEmpty()) {
            assertThat(registered[each - 1]).as("in use").isTrue();
            assertThat(use.base().address()).isEqualTo(each * BYTES);
            assertThat(registered[each - 1]).as("still in use").isTrue();
          }
        }
      }
    }
  }

  @Override
  public void check() {
    assertThat(registered).containsExactly(false, false);
  }
}
