// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.SlabLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/// The extents of one load, in memory. Closing the instance releases its shares of the slabs;
/// regions that were retained stay valid.
///
/// Thread-safe.
public final class Loaded implements AutoCloseable {
  private final List<Region> regions;
  private final List<Slab> slabs;
  private final TransferReport report;
  private final AtomicBoolean closed = new AtomicBoolean();

  Loaded(List<Region> regions, List<Slab> slabs, TransferReport report) {
    this.regions = List.copyOf(regions);
    this.slabs = List.copyOf(slabs);
    this.report = report;
  }

  /// The regions of a layout's pieces.
  static List<Region> regions(SlabLayout layout, List<? extends Slab> slabs) {
    List<Region> regions = new ArrayList<>(layout.placements().size());
    for (Placement place : layout.placements()) {
      Slab slab = place.slab() == Placement.NOWHERE ? null : slabs.get(place.slab());
      regions.add(new Region(slab, place.offset(), place.length()));
    }
    return regions;
  }

  /// The regions, one for each extent, in the order of the request.
  public List<Region> regions() {
    return regions;
  }

  List<Slab> slabs() {
    return slabs;
  }

  public TransferReport report() {
    return report;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      Slab.releaseAll(slabs);
    }
  }
}
