package dev.gantry.cli.internal.input;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// What a path that a user names turns out to be: the one place where commands tell formats.
public sealed interface Input {
  /// For `@Parameters`.
  String DESCRIPTION =
      "A safetensors file or index.json, a shards.json, a TFRecord file (plain, GZIP or ZLIB), or a"
          + " folder of one of these.";

  /// @throws dev.gantry.core.MalformedFileException if it is of no format known here, or breaks its
  ///     rules
  /// @throws dev.gantry.core.TransferException if it cannot be opened or read
  static Input open(GantrySession session, Path path) {
    return switch (Format.of(session, path)) {
      case SAFETENSORS -> new Checkpoint(SafetensorsOpener.open(path));
      case SHARDS -> new Shards(ShardSet.open(path));
      case TFRECORD -> new Records(Format.recordFiles(session, path));
    };
  }

  /// The checkpoint that a path stands for.
  ///
  /// @throws MisuseException if it is of another format
  static WeightsCatalogue checkpoint(GantrySession session, Path path) {
    return switch (open(session, path)) {
      case Checkpoint(WeightsCatalogue weights) -> weights;
      case Shards _, Records _ -> throw new MisuseException(path + " is no safetensors checkpoint");
    };
  }

  /// The TFRecord files that some paths stand for. Indexes among them are passed over: a shell's
  /// `folder/*` names them too.
  ///
  /// @throws MisuseException if one is of another format, or all are indexes
  static List<Path> recordFiles(GantrySession session, List<Path> paths) {
    List<Path> named = paths.stream().filter(path -> !Format.isRecordIndex(path)).toList();
    if (named.isEmpty()) {
      throw new MisuseException(
          paths.getFirst() + " is an index; name the TFRecord file that it belongs to");
    }
    List<Path> all = new ArrayList<>();
    for (Path path : named) {
      switch (open(session, path)) {
        case Records(List<Path> files) -> all.addAll(files);
        case Checkpoint _, Shards _ -> throw new MisuseException(path + " is no TFRecord file");
      }
    }
    return all;
  }

  record Checkpoint(WeightsCatalogue weights) implements Input {}

  record Shards(ShardSet set) implements Input {}

  /// @param files one or more, in the order of their names; looked at no further than their names
  ///     or first bytes
  record Records(List<Path> files) implements Input {}
}
