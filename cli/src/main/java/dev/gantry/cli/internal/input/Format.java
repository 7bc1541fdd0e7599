// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
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

/// The formats of input files. A file's first bytes decide its format. If they do not, its name
/// decides, so that the error for a damaged file describes the fault in the format that the name
/// announces.
enum Format {
  WEIGHTS,
  SHARDS,
  TFRECORD,
  WEBDATASET;

  private static final String UNKNOWN = "unknown-format";
  static final String LIST_OF_A_SET = "this is the list of a set of files; name the set's folder";
  private static final String JSON_SUFFIX = ".json";

  /// Matches the names of TFRecord files: names that contain `tfrecord`, and names such as
  /// `train-00000-of-00010`, which TensorFlow gives the files of a dataset.
  private static final Pattern RECORD_NAME =
      Pattern.compile(".*tfrecord.*|.*-[0-9]{5}-of-[0-9]{5}(\\..*)?", Pattern.DOTALL);

  private static final Pattern TAR_NAME =
      Pattern.compile(".*\\.(tar|tar\\.gz|tgz)", Pattern.DOTALL);

  /// The format that was found at a location.
  ///
  /// @param files the TFRecord files or tar archives; empty for the other formats
  record Found(Format format, List<Location> files) {}

  /// @throws MalformedFileException of kind `unknown-format`; of kind `several-formats` if a
  ///     folder has both shards and weights
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
      // For a remote file with the suffix of a weights format, the name decides. This saves a
      // request to the server.
      return saysShards(file) ? SHARDS : WEIGHTS;
    }
    // This check comes first, because it refuses files whose opening would block, such as pipes.
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
            : "the first bytes are not those of weights ("
                + weightsFormats()
                + "), TFRecord (plain, GZIP or ZLIB) or tar, and the name does not tell the"
                + " format");
  }

  private static Found ofFolder(GantrySession session, Folder folder) {
    boolean shards = hasShards(folder);
    boolean weights = hasWeights(folder);
    if (shards && weights) {
      throw new MalformedFileException(
          folder.location(),
          0,
          "several-formats",
          "the folder has both " + ShardSet.FILE_NAME + " and weights; name one of them");
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
                weightsFormats(),
                ShardSet.FILE_NAME,
                CheckpointListing.advice(session, folder.location())));
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

  /// Whether a JSON file describes shards: its name is `shards.json`, or its member `format` says
  /// so. A syntax error after that member does not matter. For a remote file, only the name
  /// decides.
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
      // The reader of the file will report the error.
      return false;
    }
  }
}
