// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.resident.ResidentFile;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.resident.ResidentStore;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Loads of weights that a server keeps in memory: nothing is read, the memory is mapped. Also
/// the server's own load.
final class ResidentLoad {
  private ResidentLoad() {}

  /// Whether bytes of a server may be mapped: checksums are of bytes that are read.
  static boolean serves(List<ExtentRequest> wanted, TransferOptions options) {
    return options.checksums() == null
        && !wanted.isEmpty()
        && ResidentWeights.isHeld(wanted.getFirst().extent().file());
  }

  /// Maps the extents that lie on this device in files of a server, where their alignment wants them.
  ///
  /// @param read reads the others, as those of any store
  static Loaded map(
      List<ExtentRequest> wanted, Device device, Function<List<ExtentRequest>, Loaded> read) {
    long start = System.nanoTime();
    Map<Location, ResidentFile> files = new LinkedHashMap<>();
    List<Slab> slabs = new ArrayList<>();
    try {
      List<ExtentRequest> others = others(wanted, device, files);
      Map<Location, Slab> mapped = new LinkedHashMap<>();
      return Cleanup.orUndo(
          () -> {
            files.forEach((location, file) -> {
              if (file.device().equals(device)) {
                mapped.put(location, file.map());
                slabs.add(mapped.get(location));
              }
            });
            Loaded rest = others.isEmpty() ? null : read.apply(others);
            Iterator<Region> next =
                rest == null ? Collections.emptyIterator() : rest.regions().iterator();
            List<Region> regions = new ArrayList<>(wanted.size());
            for (ExtentRequest one : wanted) {
              ResidentFile file = files.get(one.extent().file());
              regions.add(
                  file != null && maps(file, one, device)
                      ? region(one.extent(), file, mapped)
                      : next.next());
            }
            if (rest == null) {
              Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
              return new Loaded(
                  regions, slabs, new TransferReport(Map.of(), 0, 0, 0, List.of(), elapsed));
            }
            slabs.addAll(rest.slabs());
            return new Loaded(regions, slabs, rest.report());
          },
          () -> Slab.releaseAll(slabs));
    } finally {
      files.values().forEach(ResidentFile::close);
    }
  }

  /// Opens the files, and finds what [#map] cannot map.
  private static List<ExtentRequest> others(
      List<ExtentRequest> wanted, Device device, Map<Location, ResidentFile> files) {
    List<ExtentRequest> others = new ArrayList<>();
    for (ExtentRequest one : wanted) {
      Location file = one.extent().file();
      if (!files.containsKey(file)) {
        ResidentStore.find(file).ifPresent(found -> files.put(file, found));
      }
      if (!maps(files.get(file), one, device)) {
        others.add(one);
      }
    }
    return others;
  }

  private static boolean maps(@Nullable ResidentFile file, ExtentRequest wanted, Device device) {
    Extent extent = wanted.extent();
    return file != null
        && extent.length() > 0
        && file.device().equals(device)
        && file.maps(extent.offset(), extent.end())
        && (extent.offset() + file.offsetInSlab()) % wanted.alignmentBytes() == 0;
  }

  private static Region region(Extent extent, ResidentFile file, Map<Location, Slab> slabs) {
    return new Region(
        slabs.get(extent.file()), extent.offset() + file.offsetInSlab(), extent.length());
  }

  /// Copies what lies in a server's memory on the device that wants it, and returns when it is there.
  ///
  /// @param which of the parts want it on this device
  /// @param begin is run before memory changes
  /// @return those that were not copied
  static List<Integer> copy(
      List<ReadInto> parts, List<Integer> which, Device device, Runnable begin) {
    if (!(device instanceof Device.Cuda)
        || which.stream().noneMatch(i -> ResidentWeights.isHeld(parts.get(i).extent().file()))) {
      return which;
    }
    Map<Location, ResidentFile> files = new LinkedHashMap<>();
    Map<Location, Slab> slabs = new LinkedHashMap<>();
    try {
      List<Integer> others = new ArrayList<>();
      List<Runnable> copies = new ArrayList<>();
      for (int i : which) {
        ReadInto part = parts.get(i);
        ExtentRequest wanted = new ExtentRequest(part.extent(), 1);
        if (!others(List.of(wanted), device, files).isEmpty()) {
          others.add(i);
          continue;
        }
        Location location = part.extent().file();
        ResidentFile file = Objects.requireNonNull(files.get(location));
        slabs.computeIfAbsent(location, _ -> file.map());
        copies.add(() -> region(part.extent(), file, slabs).copyTo(part.memory()));
      }
      if (!copies.isEmpty()) {
        begin.run();
        copies.forEach(Runnable::run);
      }
      return others;
    } finally {
      files.values().forEach(ResidentFile::close);
      Slab.releaseAll(List.copyOf(slabs.values()));
    }
  }

  /// Reads files into memory that clients can map.
  static ResidentImage keep(
      TransferEngine engine,
      int version,
      String entry,
      List<ResidentSource> sources,
      Device device,
      TransferOptions options) {
    ResidentImage image = ResidentImage.allocate(version, entry, sources, device);
    return Cleanup.orUndo(
        () -> {
          List<ReadInto> parts = new ArrayList<>();
          for (ResidentImage.Range range : image.targets()) {
            Location file = sources.get(range.source()).file();
            parts.add(
                new ReadInto(
                    file.fileName(),
                    new Extent(file, range.from(), range.memory().length()),
                    range.memory()));
          }
          new ReadIntoOperation(engine, parts, options).run();
          image.seal();
          return image;
        },
        image::close);
  }
}
