// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.FileList;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/// The contents of a location that a user names. All commands determine the format of files here.
public sealed interface Input {
  /// The description of a parameter that names an input, for `@Parameters`.
  String DESCRIPTION =
      "Weights (safetensors, an index.json, PyTorch, DCP, NumPy, GGUF), a shards.json, a TFRecord"
          + " file (plain, GZIP or ZLIB), a WebDataset tar, or a folder of one of these; a path, or"
          + " an s3, http or https URL.";

  /// @throws dev.gantry.core.MalformedFileException if the location's format is unknown, or a
  ///     file violates the rules of its format
  /// @throws dev.gantry.core.TransferException if a file cannot be opened or read
  static Input open(GantrySession session, Location location) {
    Input found = find(session, location);
    if (found instanceof Records(List<Location> files)) {
      FileList.requireWhole(session, files);
    }
    return found;
  }

  /// Opens a location as [#open] does, but does not check that a set of TFRecord files is
  /// complete: callers check this once for all files of a set.
  private static Input find(GantrySession session, Location location) {
    if (ResidentWeights.isServer(location)) {
      // This process holds the server's weights until it ends.
      return new Weights(WeightsFormats.open(session, ResidentWeights.hold(location).entry()));
    }
    Format.Found found = Format.of(session, location);
    return switch (found.format()) {
      case WEIGHTS -> new Weights(WeightsFormats.open(session, location));
      case SHARDS -> new Shards(ShardSet.open(session, location));
      case TFRECORD -> new Records(found.files());
      case WEBDATASET -> new Archives(found.files());
    };
  }

  /// Opens the weights at a location.
  ///
  /// @throws MisuseException if the location has another format
  static WeightsCatalogue weights(GantrySession session, Location location) {
    return switch (open(session, location)) {
      case Weights(WeightsCatalogue weights) -> weights;
      case Shards _, Records _, Archives _ ->
          throw new MisuseException("FILE must be weights: " + location);
    };
  }

  /// Returns the data files of weights; empty for a path of another format, for an index and for
  /// the list of a set.
  ///
  /// @throws MisuseException if the weights are not local
  static List<Path> weightsFiles(GantrySession session, Location path) {
    if (isBesideRecords(path)
        || !(find(session, path) instanceof Weights(WeightsCatalogue weights))) {
      return List.of();
    }
    return weights.files().stream().map(Location::path).toList();
  }

  private static boolean isBesideRecords(Location path) {
    return Format.isRecordIndex(path) || Format.isList(path);
  }

  /// Returns the tar archives at a path; empty for a path of another format, for an index and for
  /// the list of a set.
  static List<Location> archives(GantrySession session, Location path) {
    return !isBesideRecords(path) && find(session, path) instanceof Archives(List<Location> files)
        ? files
        : List.of();
  }

  /// Returns the TFRecord files at some paths. Indexes and lists of sets among the paths are
  /// skipped, because a shell's `folder/*` names them, too.
  ///
  /// @throws MisuseException if a path has another format, or all paths are indexes and lists
  static List<Location> recordFiles(GantrySession session, List<Location> paths) {
    List<Location> named = paths.stream().filter(path -> !isBesideRecords(path)).toList();
    if (named.isEmpty()) {
      Location first = paths.getFirst();
      throw new MisuseException(
          Format.isList(first)
              ? first + ": " + Format.LIST_OF_A_SET
              : first + " is an index; name the TFRecord file that it belongs to");
    }
    List<Location> all = new ArrayList<>();
    for (Location path : named) {
      switch (find(session, path)) {
        case Records(List<Location> files) -> all.addAll(files);
        case Weights _, Shards _, Archives _ ->
            throw new MisuseException(path + " is not a TFRecord file");
      }
    }
    FileList.requireWhole(session, all);
    return all;
  }

  /// Refuses an output folder that has shards: if weights were written beside the shards, the
  /// folder's format would be ambiguous.
  ///
  /// @throws MisuseException if the folder has raw tensor shards; the folder need not exist
  static void requireNoShards(GantrySession session, Path folder) {
    requireNot(session, folder, Format::hasShards, ShardSet.FILE_NAME);
  }

  /// Refuses an output folder that has weights, as [#requireNoShards] refuses one that has
  /// shards.
  static void requireNoWeights(GantrySession session, Path folder) {
    requireNot(session, folder, Format::hasWeights, "weights");
  }

  private static void requireNot(
      GantrySession session, Path folder, Predicate<Folder> has, String what) {
    if (Folder.at(session, Location.of(folder)).filter(has).isPresent()) {
      throw new MisuseException("OUT must be a folder without " + what + " (was " + folder + ")");
    }
  }

  record Weights(WeightsCatalogue weights) implements Input {}

  record Shards(ShardSet set) implements Input {}

  /// @param files one or more files in the order of their names; only their names or first bytes
  ///     have been examined
  record Records(List<Location> files) implements Input {}

  /// @param files one or more tar archives of WebDataset in the order of their names; only their
  ///     names or first bytes have been examined
  record Archives(List<Location> files) implements Input {}
}
