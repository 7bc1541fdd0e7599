// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsFormat;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The formats of files, told by their first bytes; where these say nothing, by names, so that a
/// damaged file is read, and its fault named, as what it was meant to be.
enum Format {
  WEIGHTS,
  SHARDS,
  TFRECORD;

  private static final String UNKNOWN = "unknown-format";
  private static final String JSON_SUFFIX = ".json";

  /// As TensorFlow names the shards of a data set; or the format itself is in the name.
  private static final Pattern RECORD_NAME =
      Pattern.compile(".*tfrecord.*|.*-[0-9]{5}-of-[0-9]{5}(\\..*)?", Pattern.DOTALL);

  /// @throws MalformedFileException of kind `unknown-format`, or `several-formats` of a folder
  /// @throws dev.gantry.core.TransferException if a file cannot be opened or read
  static Format of(GantrySession session, Path path) {
    return Files.isDirectory(path) ? ofFolder(session, path) : ofFile(session, path);
  }

  /// Whether a remote location is a `shards.json`, or a folder that has one.
  static boolean isShards(Location.Remote location) {
    return location.fileName().equals(ShardSet.FILE_NAME)
        || Folder.at(location).stream()
            .flatMap(folder -> folder.named(ShardSet.FILE_NAME).stream())
            .anyMatch(file -> file.fileName().equals(ShardSet.FILE_NAME));
  }

  private static Format ofFile(GantrySession session, Path file) {
    // First, since it refuses what would block when it is opened.
    if (TfRecordReader.isTfRecord(session, file)) {
      return TFRECORD;
    }
    if (name(file).endsWith(JSON_SUFFIX)) {
      return saysShards(file) ? SHARDS : WEIGHTS;
    }
    try {
      WeightsFormats.formatOf(Location.of(file));
      return WEIGHTS;
    } catch (MalformedFileException fault) {
      if (isRecordName(name(file))) {
        return TFRECORD;
      }
      throw fault.kind().equals(UNKNOWN) ? unknown(file) : fault;
    }
  }

  private static MalformedFileException unknown(Path file) {
    return new MalformedFileException(
        file,
        0,
        UNKNOWN,
        "neither weights ("
            + weightsFormats()
            + ") nor TFRecord (plain, GZIP or ZLIB) begin so, and the name tells nothing");
  }

  private static Format ofFolder(GantrySession session, Path folder) {
    List<Path> files = files(folder);
    boolean shards = files.stream().anyMatch(file -> name(file).equals(ShardSet.FILE_NAME));
    boolean weights =
        WeightsFormats.all().stream()
            .anyMatch(format -> format.recognisesFolder(files.stream().map(Location::of).toList()));
    if (shards && weights) {
      throw new MalformedFileException(
          folder,
          0,
          "several-formats",
          "there are " + ShardSet.FILE_NAME + " and weights; name one of them");
    }
    if (shards) {
      return SHARDS;
    }
    if (weights) {
      return WEIGHTS;
    }
    if (files.stream().anyMatch(file -> isRecordFile(session, file))) {
      return TFRECORD;
    }
    throw new MalformedFileException(
        folder,
        0,
        UNKNOWN,
        "the folder has no weights ("
            + weightsFormats()
            + "), no "
            + ShardSet.FILE_NAME
            + ", and no TFRecord file");
  }

  private static String weightsFormats() {
    return WeightsFormats.all().stream().map(WeightsFormat::name).collect(Collectors.joining(", "));
  }

  /// The TFRecord files that a path of this format stands for, in the order of their names.
  static List<Path> recordFiles(GantrySession session, Path path) {
    return Files.isDirectory(path)
        ? files(path).stream().filter(file -> isRecordFile(session, file)).toList()
        : List.of(path);
  }

  /// Files that are being written, or that a crash left, begin like whole ones.
  private static boolean isRecordFile(GantrySession session, Path file) {
    return !TemporaryName.is(file)
        && !isRecordIndex(file)
        && (isRecordName(name(file)) || TfRecordReader.isTfRecord(session, file));
  }

  static boolean isRecordIndex(Path file) {
    return name(file).endsWith(TfRecordIndex.SUFFIX);
  }

  private static boolean isRecordName(String name) {
    return RECORD_NAME.matcher(name.toLowerCase(Locale.ROOT)).matches();
  }

  /// Whether a `format` comes before anything that is no JSON, and is that of shards.
  private static boolean saysShards(Path file) {
    if (name(file).equals(ShardSet.FILE_NAME)) {
      return true;
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
      // The reader of the file says what is wrong with it.
      return false;
    }
  }

  /// A folder's regular files, in the order of their names.
  private static List<Path> files(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(Files::isRegularFile).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(folder + " cannot be listed", e);
    }
  }

  private static String name(Path file) {
    return String.valueOf(file.getFileName());
  }
}
