// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.MappedSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.resident.FileMapping;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferEngine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;

/// A load that maps extents if it can, such as those of a lazy load's files or of a server's
/// memory. It reads the extents that no mapping has, or that a mapping does not have at an aligned
/// address. If a step fails, nothing stays mapped or allocated.
final class MappedLoad {
  private final Function<Location, Optional<FileMapping>> mapper;
  private final Map<Location, Optional<FileMapping>> mappings = new HashMap<>();
  private final List<Slab> slabs = new ArrayList<>();

  private MappedLoad(Function<Location, Optional<FileMapping>> mapper) {
    this.mapper = mapper;
  }

  /// @param mapper maps a file, or the part of it that is wanted; the result owns the mapping's
  ///     slab; empty if the file is not mapped
  /// @param read reads the extents that are not mapped
  static Loaded run(
      List<ExtentRequest> wanted,
      Function<Location, Optional<FileMapping>> mapper,
      Function<List<ExtentRequest>, Loaded> read) {
    MappedLoad load = new MappedLoad(mapper);
    return Cleanup.orUndo(() -> load.run(wanted, read), () -> Slab.releaseAll(load.slabs));
  }

  private Loaded run(List<ExtentRequest> wanted, Function<List<ExtentRequest>, Loaded> read) {
    long start = System.nanoTime();
    List<ExtentRequest> others = wanted.stream().filter(one -> mapping(one).isEmpty()).toList();
    Loaded rest =
        others.isEmpty()
            ? new Loaded(List.of(), List.of(), TransferReport.NOTHING)
            : read.apply(others);
    slabs.addAll(rest.slabs());
    Iterator<Region> next = rest.regions().iterator();
    List<Region> regions = new ArrayList<>(wanted.size());
    for (ExtentRequest one : wanted) {
      regions.add(mapping(one).map(mapping -> mapping.region(one.extent())).orElseGet(next::next));
    }
    Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
    TransferReport report = rest.report();
    return new Loaded(regions, slabs, others.isEmpty() ? report.withElapsed(elapsed) : report);
  }

  private Optional<FileMapping> mapping(ExtentRequest one) {
    Extent extent = one.extent();
    return extent.length() == 0
        ? Optional.empty()
        : mappings
            .computeIfAbsent(extent.file(), this::map)
            .filter(mapping -> mapping.has(extent, one.alignmentBytes()));
  }

  private Optional<FileMapping> map(Location file) {
    Consumer<FileMapping> own = this::own;
    Optional<FileMapping> mapping = mapper.apply(file);
    mapping.ifPresent(own);
    return mapping;
  }

  private void own(FileMapping mapping) {
    slabs.add(mapping.slab());
  }

  /// Maps local files, each from its first wanted page to its last one.
  static Function<Location, Optional<FileMapping>> ofFiles(
      TransferEngine engine, List<ExtentRequest> wanted) {
    Map<Location, Extent> spans = new HashMap<>();
    for (ExtentRequest one : wanted) {
      if (one.extent().length() > 0) {
        spans.merge(one.extent().file(), one.extent(), MappedLoad::span);
      }
    }
    return file -> Optional.ofNullable(spans.get(file)).map(span -> map(engine, span));
  }

  private static Extent span(Extent one, Extent other) {
    long start = Math.min(one.offset(), other.offset());
    return new Extent(one.file(), start, Math.max(one.end(), other.end()) - start);
  }

  private static FileMapping map(TransferEngine engine, Extent span) {
    try (SourceFile file = engine.openFile(span.file(), CachePolicy.BUFFERED)) {
      int descriptor = file.mappable();
      // Touching bytes that a short file lacks would be a bus error later.
      file.checkHolds(span.end());
      long offset = span.offset() & -engine.calls().pageBytes();
      return Cleanup.orUndo(
          () -> MappedSlab.map(span.file(), descriptor, offset, span.end() - offset),
          slab -> {
            file.requireUnchanged();
            return new FileMapping(slab, offset, span.end(), -offset);
          },
          Slab::release);
    }
  }
}
