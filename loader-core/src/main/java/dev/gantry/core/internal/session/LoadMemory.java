// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.SlabLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/// The memory that a load will take: the most while it runs, and what stays. Told before anything is
/// allocated. Immutable.
///
/// @param device where the loaded bytes stay
/// @param most while the load runs
/// @param slabs their sizes; 0 where everything moves to others
/// @param slabOf of each thing that is loaded, or [#NOWHERE]
public record LoadMemory(Device device, MemoryUse most, List<Long> slabs, List<Integer> slabOf) {
  public static final int NOWHERE = -1;

  public LoadMemory {
    slabs = List.copyOf(slabs);
    slabOf = List.copyOf(slabOf);
  }

  /// @param slabCapacity the least that a slab takes of a device
  /// @param readers what the readers take for themselves
  static LoadMemory of(SlabLayout layout, Device device, long slabCapacity, MemoryUse readers) {
    List<Long> sizes =
        layout.slabSizes().stream()
            .map(size -> device instanceof Device.Cuda ? Math.max(size, slabCapacity) : size)
            .toList();
    List<Integer> slabOf = layout.placements().stream().map(Placement::slab).toList();
    MemoryUse most = MemoryUse.on(device, sum(sizes)).plus(readers);
    return new LoadMemory(device, most, placed(sizes, slabOf), slabOf);
  }

  private static List<Long> placed(List<Long> sizes, List<Integer> slabOf) {
    Set<Integer> placed = new HashSet<>(slabOf);
    return IntStream.range(0, sizes.size())
        .mapToObj(slab -> placed.contains(slab) ? sizes.get(slab) : Long.valueOf(0))
        .toList();
  }

  /// This load and then another, whose things follow.
  public LoadMemory then(LoadMemory next) {
    List<Long> all = new ArrayList<>(slabs);
    all.addAll(next.slabs);
    List<Integer> places = new ArrayList<>(slabOf);
    next.slabOf.forEach(slab -> places.add(slab == NOWHERE ? NOWHERE : slab + slabs.size()));
    return new LoadMemory(device, most.max(stays().plus(next.most)), all, places);
  }

  /// The same things in another order.
  ///
  /// @param order of each thing, its place here
  public LoadMemory inOrder(List<Integer> order) {
    return new LoadMemory(device, most, slabs, order.stream().map(slabOf::get).toList());
  }

  /// What is there after the load.
  public MemoryUse stays() {
    return MemoryUse.on(device, sum(slabs));
  }

  /// What is there after the load while these of its things are: a slab stays as a whole.
  public MemoryUse stays(IntPredicate thing) {
    return MemoryUse.on(
        device,
        IntStream.range(0, slabOf.size())
            .filter(thing)
            .map(slabOf::get)
            .filter(slab -> slab != NOWHERE)
            .distinct()
            .mapToLong(slabs::get)
            .sum());
  }

  private static long sum(List<Long> sizes) {
    return sizes.stream().mapToLong(Long::longValue).sum();
  }
}
