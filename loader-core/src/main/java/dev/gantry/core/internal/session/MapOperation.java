// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.MappedSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferEngine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Maps the files of extents, each from the first wanted page to the last. All or nothing.
final class MapOperation {
  private record Span(long start, long end) {
    Span with(Extent extent) {
      return new Span(Math.min(start, extent.offset()), Math.max(end, extent.end()));
    }
  }

  private record Mapping(MappedSlab slab, long fileOffset) {}

  private MapOperation() {}

  static Loaded run(TransferEngine engine, List<ExtentRequest> wanted) {
    long start = System.nanoTime();
    Map<Location, Span> spans = new HashMap<>();
    for (ExtentRequest one : wanted) {
      Extent extent = one.extent();
      if (extent.length() > 0) {
        spans.merge(
            extent.file(), new Span(extent.offset(), extent.end()), (span, _) -> span.with(extent));
      }
    }
    List<Slab> slabs = new ArrayList<>();
    try {
      Map<Location, Mapping> mappings = new HashMap<>();
      for (Map.Entry<Location, Span> entry : spans.entrySet()) {
        Mapping mapping = map(engine, entry.getKey(), entry.getValue());
        slabs.add(mapping.slab());
        mappings.put(entry.getKey(), mapping);
      }
      List<Region> regions = new ArrayList<>(wanted.size());
      for (ExtentRequest one : wanted) {
        regions.add(region(one, mappings, slabs));
      }
      Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
      return new Loaded(regions, slabs, new TransferReport(Map.of(), 0, 0, 0, List.of(), elapsed));
    } catch (RuntimeException | Error failure) {
      Slab.releaseAll(slabs, failure);
      throw failure;
    }
  }

  private static Mapping map(TransferEngine engine, Location location, Span span) {
    try (SourceFile file = engine.openFile(location, CachePolicy.BUFFERED)) {
      int descriptor = file.mappable();
      if (file.size() < span.end()) {
        // Touching bytes that the file does not have would be a bus error later.
        throw new TransferException(
            "mmap", location.toString(), new Failure.EndOfFile(span.end() - file.size()));
      }
      long offset = span.start() & -engine.calls().pageBytes();
      return new Mapping(MappedSlab.map(location, descriptor, offset, span.end() - offset), offset);
    }
  }

  private static Region region(
      ExtentRequest wanted, Map<Location, Mapping> mappings, List<Slab> slabs) {
    Extent extent = wanted.extent();
    Mapping mapping = mappings.get(extent.file());
    if (extent.length() == 0 || mapping == null) {
      return new Region(null, 0, 0);
    }
    Region inPlace =
        new Region(mapping.slab(), extent.offset() - mapping.fileOffset(), extent.length());
    if (inPlace.offset() % wanted.alignmentBytes() == 0) {
      return inPlace;
    }
    HostSlab copy = Admission.slab(extent.length());
    slabs.add(copy);
    inPlace.copyTo(copy.segment());
    return new Region(copy, 0, extent.length());
  }
}
