// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Availability;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

/// Compares the cache with a simple model of a GPU: allocations that are made and freed, often at
/// the same address, and a list of registrations.
class RegistrationCacheTest {
  private static final Device.Cuda GPU = new Device.Cuda(0);
  private static final long PAGE = 64 << 10;

  private final Model model = new Model();

  /// A model of the driver and libcufile, which fails on every use that the real ones would
  /// punish.
  private static final class Model implements RegistrationCache.Hardware {
    private final TreeMap<Long, Allocation> allocations = new TreeMap<>();

    /// The end of each registration and the number of its allocation, by the start of the
    /// registration.
    private final TreeMap<Long, long[]> registered = new TreeMap<>();

    private long budget = 64 * PAGE;
    private long lastId;
    private long registrations;
    private boolean refuses;

    void allocate(long base, long bytes) {
      allocations.put(base, new Allocation(base, bytes, ++lastId));
    }

    long registeredBytes() {
      return registered.entrySet().stream()
          .mapToLong(entry -> entry.getValue()[0] - entry.getKey())
          .sum();
    }

    @Override
    public Availability<Allocation> allocation(Device.Cuda device, long address) {
      Map.Entry<Long, Allocation> found = allocations.floorEntry(address);
      return found == null || address >= found.getKey() + found.getValue().bytes()
          ? Availability.absent("no memory")
          : Availability.present(found.getValue());
    }

    @Override
    public long id(Device.Cuda device, long address) {
      return allocation(device, address).toOptional().map(Allocation::id).orElse(0L);
    }

    @Override
    public long budgetBytes(Device.Cuda device) {
      return budget;
    }

    @Override
    public void register(Device.Cuda device, MemorySegment region) {
      if (refuses) {
        throw new TransferException("cuFileBufRegister", "memory", new Failure.Cuda(1, "no", "no"));
      }
      long start = region.address();
      long end = start + region.byteSize();
      Allocation allocation = allocation(device, start).orElseThrow(AssertionError::new);
      assertThat(start).as("the whole allocation").isEqualTo(allocation.base());
      assertThat(end).isEqualTo(allocation.base() + allocation.bytes());
      registered.forEach((from, entry) ->
          assertThat(from < end && start < entry[0]).as("registered twice").isFalse());
      registered.put(start, new long[] {end, allocation.id()});
      registrations++;
      assertThat(registeredBytes()).isLessThanOrEqualTo(budget);
    }

    @Override
    public void deregister(Device.Cuda device, MemorySegment region) {
      assertThat(registered.remove(region.address())).as("not registered").isNotNull();
    }
  }

  @Property(tries = 300)
  void whatIsInUseIsRegisteredInItsOwnAllocationAndAllStaysWithinTheBudget(@ForAll long seed) {
    long before = LiveResources.snapshot().registrations();
    Random random = new Random(seed);
    Model gpu = new Model();
    RegistrationCache cache = new RegistrationCache(gpu);
    List<RegistrationCache.Load> loads = new ArrayList<>(List.of(cache.begin(), cache.begin()));
    List<Runnable> closings = new ArrayList<>();
    List<long[]> inUse = new ArrayList<>();
    for (int step = 0; step < 200; step++) {
      switch (random.nextInt(8)) {
        case 0 -> gpu.refuses = random.nextInt(4) == 0;
        case 1 -> {
          // Frees an allocation that is not in use and allocates again, at the same address or
          // near it.
          long base = random.nextInt(8) * 32 * PAGE + random.nextInt(2) * 512;
          if (inUse.stream().noneMatch(used -> near(used[0], base))) {
            gpu.allocations.keySet().removeIf(old -> near(old, base));
            gpu.allocate(base, 1 + random.nextLong(31 * PAGE));
          }
        }
        case 2 -> {
          int which = random.nextInt(loads.size());
          loads.get(which).close();
          loads.set(which, cache.begin());
        }
        case 3 -> {
          if (!closings.isEmpty()) {
            int which = random.nextInt(closings.size());
            closings.remove(which).run();
            inUse.remove(which);
          }
        }
        default -> {
          if (gpu.allocations.isEmpty()) {
            continue;
          }
          var all = List.copyOf(gpu.allocations.values());
          var some = all.get(random.nextInt(all.size()));
          long offset = random.nextLong(some.bytes());
          long bytes = 1 + random.nextLong(some.bytes() - offset);
          RegistrationCache.Use use =
              loads.get(random.nextInt(loads.size())).use(GPU, some.base() + offset, bytes);
          if (use.refusal().isEmpty()) {
            assertThat(use.base().address()).isEqualTo(some.base());
            assertThat(offset + bytes).isLessThanOrEqualTo(use.base().byteSize());
          }
          closings.add(use::close);
          inUse.add(
              new long[] {some.base() + offset, bytes, use.refusal().isEmpty() ? some.id() : 0});
        }
      }
      for (long[] used : inUse) {
        if (used[2] != 0) {
          Map.Entry<Long, long[]> entry = gpu.registered.floorEntry(used[0]);
          assertThat(entry).as("in use, step %d of seed %d", step, seed).isNotNull();
          assertThat(entry.getValue()[0]).isGreaterThanOrEqualTo(used[0] + used[1]);
          assertThat(entry.getValue()[1]).isEqualTo(used[2]);
        }
      }
    }
    loads.forEach(RegistrationCache.Load::close);
    closings.forEach(Runnable::run);
    assertThat(gpu.registered).isEmpty();
    assertThat(LiveResources.snapshot().registrations()).isEqualTo(before);
  }

  /// Returns whether two addresses are in the same range of the model, in which a new allocation
  /// replaces the old one.
  private static boolean near(long one, long other) {
    return one / (32 * PAGE) == other / (32 * PAGE);
  }

  private static String use(RegistrationCache.Load load, long address, long bytes) {
    try (RegistrationCache.Use use = load.use(GPU, address, bytes)) {
      return use.refusal();
    }
  }

  @Test
  void memoryIsDeregisteredWithTheLastLoadThatUsedIt() {
    model.allocate(0, PAGE);
    model.allocate(2 * PAGE, PAGE);
    RegistrationCache cached = new RegistrationCache(model);
    RegistrationCache.Load first = cached.begin();
    RegistrationCache.Load second = cached.begin();
    assertThat(use(first, 0, 1)).isEmpty();
    assertThat(use(first, 2 * PAGE, 1)).isEmpty();
    assertThat(use(second, 0, 1)).isEmpty();

    first.close();
    assertThat(model.registered.keySet()).containsExactly(0L);
    second.close();
    assertThat(model.registered).isEmpty();
    assertThat(model.registrations).isEqualTo(2);
  }

  @Test
  void aUseThatOutlivesItsLoadKeepsItsMemoryRegistered() {
    model.allocate(0, PAGE);
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    RegistrationCache.Use held = load.use(GPU, 0, 1);
    load.close();
    assertThat(model.registered).hasSize(1);
    held.close();
    assertThat(model.registered).isEmpty();
  }

  @Test
  void memoryThatItsOwnerFreedDuringALoadIsDeregisteredWithTheLoadOnce() {
    model.allocate(0, 2 * PAGE);
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    assertThat(use(load, 0, 1)).isEmpty();
    model.allocate(0, PAGE);
    assertThat(use(load, 0, 1)).isEmpty();
    assertThat(model.registered).hasSize(1);
    load.close();
    assertThat(model.registered).isEmpty();
  }

  @Test
  void readsOfMemoryThatFitsRegisterItOnce() {
    for (int i = 0; i < 64; i++) {
      model.allocate(2L * i * PAGE, PAGE);
    }
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    Random random = new Random(1);
    for (int i = 0; i < 10_000; i++) {
      assertThat(use(load, 2L * random.nextInt(64) * PAGE + random.nextInt(4096), 4096)).isEmpty();
    }
    assertThat(model.registrations).isEqualTo(64);
    load.close();
  }

  @Test
  void theLeastRecentlyUsedGoesWhenAnotherNeedsItsRoom() {
    model.budget = 2 * PAGE;
    for (int i = 0; i < 3; i++) {
      model.allocate(2L * i * PAGE, PAGE);
    }
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    assertThat(use(load, 0, 1)).isEmpty();
    assertThat(use(load, 2 * PAGE, 1)).isEmpty();
    assertThat(use(load, 0, 1)).isEmpty();
    assertThat(use(load, 4 * PAGE, 1)).isEmpty();

    assertThat(model.registered.keySet()).containsExactly(0L, 4 * PAGE);
    load.close();
  }

  @Test
  void whatIsInUseIsNotEvicted() {
    model.budget = PAGE;
    model.allocate(0, PAGE);
    model.allocate(2 * PAGE, PAGE);
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    RegistrationCache.Use held = load.use(GPU, 0, PAGE);

    assertThat(use(load, 2 * PAGE, 1)).contains("BAR1 window has room for 0 more");
    held.close();
    assertThat(use(load, 2 * PAGE, 1)).isEmpty();
    load.close();
  }

  @Test
  void partsOfOneAllocationShareItsRegistration() {
    model.allocate(512, 8 * PAGE);
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    try (RegistrationCache.Use _ = load.use(GPU, 512, 100)) {
      assertThat(use(load, 550, PAGE)).isEmpty();
      assertThat(use(load, 3 * PAGE, 100)).isEmpty();
    }
    assertThat(use(load, PAGE, 2 * PAGE)).isEmpty();

    assertThat(model.registrations).isEqualTo(1);
    assertThat(model.registered.firstKey()).isEqualTo(512);
    assertThat(model.registered.firstEntry().getValue()[0]).isEqualTo(512 + 8 * PAGE);
    load.close();
  }

  @Test
  void anAllocationThatPassesTheBudgetIsNotRegistered() {
    model.budget = 4 * PAGE;
    model.allocate(0, 5 * PAGE);
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    assertThat(use(load, 0, PAGE)).contains("BAR1 window has room for " + 4 * PAGE + " more");
    assertThat(model.registered).isEmpty();
  }

  @Test
  void memoryThatWasFreedAndAllocatedAgainIsRegisteredAnew() {
    model.allocate(0, 2 * PAGE);
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    assertThat(use(load, 0, PAGE)).isEmpty();
    model.allocate(0, PAGE);
    assertThat(use(load, 0, PAGE)).isEmpty();

    assertThat(model.registrations).isEqualTo(2);
    assertThat(model.registered.firstEntry().getValue()[1]).isEqualTo(2);
    load.close();
  }

  @Test
  void whatReachesPastItsAllocationIsRefused() {
    model.allocate(0, PAGE);
    model.allocate(PAGE, PAGE);
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    assertThat(use(load, 0, PAGE + 1)).contains("past the end of its allocation");
    assertThat(use(load, 10 * PAGE, 1)).contains("no memory");
  }

  @Test
  void whatCuFileRefusedIsNotAskedForAgain() {
    model.allocate(0, PAGE);
    model.refuses = true;
    RegistrationCache.Load load = new RegistrationCache(model).begin();
    assertThat(use(load, 0, PAGE)).contains("cuFileBufRegister");
    model.refuses = false;
    assertThat(use(load, 0, PAGE)).contains("cuFileBufRegister");

    load.close();
    assertThat(use(load, 0, PAGE)).isEmpty();
    load.close();
  }
}
