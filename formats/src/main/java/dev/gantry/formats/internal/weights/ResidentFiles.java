// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The files that a server of resident weights keeps: the data files, and the small files beside
/// them that formats also read, such as an index and `config.json`.
///
/// @param entry the name of the file that clients open; empty if clients open all files as a
///     folder
/// @param sources the files
public record ResidentFiles(String entry, List<ResidentSource> sources) {
  private static final long MAX_BESIDE_BYTES = 64 << 20;
  private static final String INDEX = ".index.json";

  private record Span(long from, long to) {
    Span with(Span other) {
      return new Span(Math.min(from, other.from), Math.max(to, other.to));
    }
  }

  /// @throws dev.gantry.core.TransferException if a file cannot be opened
  public static ResidentFiles of(GantrySession session, WeightsCatalogue weights) {
    Map<Location, Span> spans = new HashMap<>();
    for (StoredTensor tensor : weights.tensors().values()) {
      Extent extent = tensor.extent();
      if (extent.length() > 0) {
        spans.merge(extent.file(), new Span(extent.offset(), extent.end()), Span::with);
      }
    }
    List<ResidentSource> sources = new ArrayList<>();
    Set<String> names = new HashSet<>();
    for (Location file : weights.files()) {
      Span span = spans.getOrDefault(file, new Span(0, 0));
      sources.add(new ResidentSource(file, size(session, file), span.from(), span.to()));
      names.add(file.fileName());
    }
    boolean single = weights.files().size() == 1;
    for (Location file : beside(session, weights.files().getFirst())) {
      String name = file.fileName();
      // The index beside a single file is left out, since it may name files that are not kept.
      if (name.endsWith(".json") && !(single && name.endsWith(INDEX)) && names.add(name)) {
        long size = size(session, file);
        if (size <= MAX_BESIDE_BYTES) {
          sources.add(new ResidentSource(file, size, 0, 0));
        }
      }
    }
    return new ResidentFiles(single ? weights.files().getFirst().fileName() : "", sources);
  }

  private static List<Location> beside(GantrySession session, Location file) {
    Location folder =
        switch (file) {
          case Location.Local(java.nio.file.Path path, _) ->
              Location.of(path.toAbsolutePath().resolveSibling(""));
          case Location.Remote remote -> new Location.Remote(remote.uri().resolve("."));
        };
    return Folder.at(session, folder).map(Folder::files).orElse(List.of());
  }

  private static long size(GantrySession session, Location file) {
    try (SourceFile opened = session.openFile(file)) {
      return opened.size();
    }
  }
}
