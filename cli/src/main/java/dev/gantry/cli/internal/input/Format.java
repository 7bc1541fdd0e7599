// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.files.FileList;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.webdataset.TarReader;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsFormat;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// The formats of files. The first bytes tell the format; if they do not, the name does, so that the error
/// for a damaged file names the fault in the format that it was meant to have.
enum Format {
  WEIGHTS,
  SHARDS,
  TFRECORD,
  WEBDATASET;

  private static final String UNKNOWN = "unknown-format";
  static final String LIST_OF_A_SET = "it is the list of a set; name its folder";
  private static final String JSON_SUFFIX = ".json";

  /// Matches names of TFRecord files: those that contain `tfrecord`, and those that TensorFlow gives the
  /// shards of a dataset.
  private static final Pattern RECORD_NAME =
      Pattern.compile(".*tfrecord.*|.*-[0-9]{5}-of-[0-9]{5}(\\..*)?", Pattern.DOTALL);

  /// Matches names of tar archives.
  private static final Pattern TAR_NAME =
      Pattern.compile(".*\\.(tar|tar\\.gz|tgz)", Pattern.DOTALL);

  /// The format that was found at a location.
  ///
  /// @param files the files, where it is TFRecord or WebDataset
  record Found(Format format, List<Location> files) {}

  /// @throws MalformedFileException of kind `unknown-format`, or `several-formats` of a folder
  /// @throws dev.gantry.core.TransferException if a file cannot be opened or read
  static Found of(GantrySession session, Location location) {
    Optional<Folder> folder = Folder.at(session, location);
    if (folder.isPresent()) {
      return ofFolder(session, folder.get());
    }
    try {
      Format format = ofFile(session, location);
      boolean isFile = format == TFRECORD || format == WEBDATASET;
      return new Found(format, isFile ? List.of(location) : List.of());
    } catch (TransferException e) {
      return ofFolder(session, Folder.insteadOf(session, location, e).orElseThrow(() -> e));
    }
  }

  private static Format ofFile(GantrySession session, Location file) {
    String name = file.fileName();
    if (file instanceof Location.Remote && isWeightsName(name)) {
      // The name is enough for a remote file: this saves a request to the server.
      return saysShards(file) ? SHARDS : WEIGHTS;
    }
    // Asked first, since it refuses files that would block when they are opened, such as pipes.
    if (TfRecordReader.isTfRecord(session, file)) {
      return TFRECORD;
    }
    if (TarReader.isTar(session, file)) {
      return WEBDATASET;
    }
    if (name.endsWith(JSON_SUFFIX)) {
      return saysShards(file) ? SHARDS : WEIGHTS;
    }
    try {
      WeightsFormat _ = WeightsFormats.formatOf(session, file);
      return WEIGHTS;
    } catch (MalformedFileException fault) {
      if (isRecordName(name)) {
        return TFRECORD;
      }
      if (isTarName(name)) {
        return WEBDATASET;
      }
      throw fault.kind().equals(UNKNOWN) ? unknown(file) : fault;
    }
  }

  private static boolean isWeightsName(String name) {
    return WeightsFormats.all().stream()
        .flatMap(format -> format.suffixes().stream())
        .anyMatch(name::endsWith);
  }

  private static MalformedFileException unknown(Location file) {
    return new MalformedFileException(
        file,
        0,
        UNKNOWN,
        isList(file)
            ? LIST_OF_A_SET
            : "neither weights ("
                + weightsFormats()
                + "), TFRecord (plain, GZIP or ZLIB) nor tar begin so, and the name tells nothing");
  }

  private static Found ofFolder(GantrySession session, Folder folder) {
    boolean shards = hasShards(folder);
    boolean weights = hasWeights(folder);
    if (shards && weights) {
      throw new MalformedFileException(
          folder.location(),
          0,
          "several-formats",
          "there are " + ShardSet.FILE_NAME + " and weights; name one of them");
    }
    if (shards || weights) {
      return new Found(shards ? SHARDS : WEIGHTS, List.of());
    }
    List<Location> records =
        FileList.files(folder).stream().filter(file -> isRecordFile(session, file)).toList();
    if (!records.isEmpty()) {
      return new Found(TFRECORD, records);
    }
    List<Location> archives =
        folder.files().stream().filter(file -> isTarName(file.fileName())).toList();
    if (!archives.isEmpty()) {
      return new Found(WEBDATASET, archives);
    }
    throw new MalformedFileException(
        folder.location(),
        0,
        UNKNOWN,
        "the folder has no weights (%s), no %s, and no TFRecord file or tar archive%s"
            .formatted(
                weightsFormats(), ShardSet.FILE_NAME, checkpoint(session, folder.location())));
  }

  /// The rest of an error's reason, if the folder has checkpoints: names one of them.
  private static String checkpoint(GantrySession session, Location folder) {
    return folder instanceof Location.Local(Path path, _)
        ? CheckpointStore.list(session, path)
            .latestWhole()
            .map(latest ->
                "; it has checkpoints; name one, such as " + latest.folder().getFileName())
            .orElse("")
        : "";
  }

  static boolean hasShards(Folder folder) {
    return folder.file(ShardSet.FILE_NAME).isPresent();
  }

  static boolean hasWeights(Folder folder) {
    return WeightsFormats.all().stream()
        .anyMatch(format -> format.recognisesFolder(folder.files()));
  }

  private static String weightsFormats() {
    return WeightsFormats.all().stream().map(WeightsFormat::name).collect(Collectors.joining(", "));
  }

  private static boolean isRecordFile(GantrySession session, Location file) {
    return !isRecordIndex(file)
        && (isRecordName(file.fileName()) || TfRecordReader.isTfRecord(session, file));
  }

  static boolean isRecordIndex(Location file) {
    return file.fileName().endsWith(TfRecordIndex.SUFFIX);
  }

  static boolean isList(Location file) {
    return file.fileName().startsWith(JointFiles.LIST);
  }

  static boolean isTarName(String name) {
    return TAR_NAME.matcher(name.toLowerCase(Locale.ROOT)).matches();
  }

  private static boolean isRecordName(String name) {
    return RECORD_NAME.matcher(name.toLowerCase(Locale.ROOT)).matches();
  }

  /// Whether a JSON file's member `format`, found before any syntax error, is that of shards. For a remote
  /// file, only its name decides.
  private static boolean saysShards(Location location) {
    if (location.fileName().equals(ShardSet.FILE_NAME)) {
      return true;
    }
    if (!(location instanceof Location.Local(Path file, _))) {
      return false;
    }
    try (JsonParser json = new JsonFactory().createParser(file.toFile())) {
      if (json.nextToken() != JsonToken.START_OBJECT) {
        return false;
      }
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        boolean format = json.currentName().equals("format");
        json.nextToken();
        if (format) {
          return json.getValueAsString("").equals(ShardSet.FORMAT);
        }
        json.skipChildren();
      }
      return false;
    } catch (IOException _) {
      // The file's reader will say what is wrong with it.
      return false;
    }
  }
}
