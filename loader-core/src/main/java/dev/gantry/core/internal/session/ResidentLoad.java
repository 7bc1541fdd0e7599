// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.resident.FileMapping;
import dev.gantry.core.internal.resident.ResidentFile;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.resident.ResidentStore;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/// Loads weights that a server keeps in memory, by mapping the server's memory instead of reading
/// files. Also loads the weights in the server itself.
final class ResidentLoad {
  private ResidentLoad() {}

  /// Whether a server's weights may serve the load. They may not if checksums are wanted, which
  /// are computed only of bytes that are read.
  static boolean serves(List<ExtentRequest> wanted, TransferOptions options) {
    return options.checksums() == null
        && !wanted.isEmpty()
        && ResidentWeights.isHeld(wanted.getFirst().extent().file());
  }

  /// Maps the extents that a server has in memory of this device.
  ///
  /// @param read reads the extents that the server does not have in memory of this device
  static Loaded map(
      List<ExtentRequest> wanted, Device device, Function<List<ExtentRequest>, Loaded> read) {
    return MappedLoad.run(wanted, file -> map(file, device), read);
  }

  private static Optional<FileMapping> map(Location location, Device device) {
    Function<ResidentFile, Optional<FileMapping>> mapping =
        found -> {
          try (ResidentFile file = found) {
            return file.device().equals(device) ? Optional.of(file.map()) : Optional.empty();
          }
        };
    return ResidentStore.find(location).flatMap(mapping);
  }

  /// Copies extents that a server has in memory of this device to the memory of the parts, and
  /// returns after the copies.
  ///
  /// @param which indices of the parts whose memory is on this device
  /// @param begin run before any memory changes
  /// @return indices of the parts that were not copied
  static List<Integer> copy(
      List<ReadInto> parts, List<Integer> which, Device device, Runnable begin) {
    if (!(device instanceof Device.Cuda)
        || which.stream().noneMatch(i -> ResidentWeights.isHeld(parts.get(i).extent().file()))) {
      return which;
    }
    Map<Location, Optional<FileMapping>> mappings = new LinkedHashMap<>();
    try {
      List<Integer> others = new ArrayList<>();
      List<Runnable> copies = new ArrayList<>();
      for (int i : which) {
        ReadInto part = parts.get(i);
        Extent extent = part.extent();
        mappings
            .computeIfAbsent(extent.file(), file -> map(file, device))
            .filter(mapping -> extent.length() > 0 && mapping.has(extent, 1))
            .ifPresentOrElse(
                mapping -> copies.add(() -> mapping.region(extent).copyTo(part.memory())),
                () -> others.add(i));
      }
      if (!copies.isEmpty()) {
        begin.run();
        copies.forEach(Runnable::run);
      }
      return others;
    } finally {
      Slab.releaseAll(
          mappings.values().stream().flatMap(Optional::stream).map(FileMapping::slab).toList());
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
    return Cleanup.orUndo(
        () -> ResidentImage.allocate(version, entry, sources, device),
        image -> {
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
        ResidentImage::close);
  }
}
