package dev.gantry.cli.internal.input;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.tfrecord.TfRecordProbe;
import dev.gantry.formats.tfrecord.index.TfRecordIndex;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// The formats of files, told by their first bytes; where these say nothing, by names, so that a
/// damaged file is read, and its fault named, as what it was meant to be.
enum Format {
  SAFETENSORS,
  SHARDS,
  TFRECORD;

  private static final String SAFETENSORS_SUFFIX = ".safetensors";
  private static final String JSON_SUFFIX = ".json";
  private static final String SAFETENSORS_INDEX_SUFFIX = ".safetensors.index.json";

  /// As TensorFlow names the shards of a data set; or the format itself is in the name.
  private static final Pattern RECORD_NAME =
      Pattern.compile(".*tfrecord.*|.*-[0-9]{5}-of-[0-9]{5}(\\..*)?", Pattern.DOTALL);

  /// @throws MalformedFileException of kind `unknown-format`, or `several-formats` of a folder
  /// @throws dev.gantry.core.TransferException if a file cannot be opened or read
  static Format of(GantrySession session, Path path) {
    return Files.isDirectory(path) ? ofFolder(session, path) : ofFile(session, path);
  }

  private static Format ofFile(GantrySession session, Path file) {
    // First, since it refuses what would block when it is opened.
    if (TfRecordProbe.beginsLikeOne(session, file)) {
      return TFRECORD;
    }
    String name = name(file);
    if (name.endsWith(JSON_SUFFIX)) {
      return saysShards(file) ? SHARDS : SAFETENSORS;
    }
    if (name.endsWith(SAFETENSORS_SUFFIX) || beginsLikeSafetensors(file)) {
      return SAFETENSORS;
    }
    if (isRecordName(name)) {
      return TFRECORD;
    }
    throw unknown(file);
  }

  /// The reader of safetensors knows what other formats begin with.
  private static MalformedFileException unknown(Path file) {
    try {
      SafetensorsHeader.read(file);
    } catch (MalformedFileException fault) {
      if (fault.kind().equals("another-format")) {
        return fault;
      }
    }
    return new MalformedFileException(
        file,
        0,
        "unknown-format",
        "neither safetensors nor TFRecord (plain, GZIP or ZLIB) begins so, and the name tells"
            + " nothing");
  }

  private static Format ofFolder(GantrySession session, Path folder) {
    List<Path> files = files(folder);
    boolean shards = files.stream().anyMatch(file -> name(file).equals(ShardSet.FILE_NAME));
    boolean safetensors = files.stream().anyMatch(Format::isSafetensorsName);
    if (shards && safetensors) {
      throw new MalformedFileException(
          folder,
          0,
          "several-formats",
          "there are " + ShardSet.FILE_NAME + " and safetensors files; name one of them");
    }
    if (shards) {
      return SHARDS;
    }
    if (safetensors) {
      return SAFETENSORS;
    }
    if (files.stream().anyMatch(file -> isRecordFile(session, file))) {
      return TFRECORD;
    }
    throw new MalformedFileException(
        folder,
        0,
        "unknown-format",
        "the folder has no *"
            + SAFETENSORS_SUFFIX
            + " and no index of them, no "
            + ShardSet.FILE_NAME
            + ", and no TFRecord file");
  }

  private static boolean isSafetensorsName(Path file) {
    String name = name(file);
    return name.endsWith(SAFETENSORS_SUFFIX) || name.endsWith(SAFETENSORS_INDEX_SUFFIX);
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
        && (isRecordName(name(file)) || TfRecordProbe.beginsLikeOne(session, file));
  }

  static boolean isRecordIndex(Path file) {
    return name(file).endsWith(TfRecordIndex.SUFFIX);
  }

  private static boolean isRecordName(String name) {
    return RECORD_NAME.matcher(name.toLowerCase(Locale.ROOT)).matches();
  }

  private static boolean beginsLikeSafetensors(Path file) {
    try (InputStream bytes = Files.newInputStream(file)) {
      ByteBuffer start = ByteBuffer.wrap(bytes.readNBytes(Long.BYTES + 1));
      if (start.limit() <= Long.BYTES) {
        return false;
      }
      long length = start.order(ByteOrder.LITTLE_ENDIAN).getLong();
      return length >= 0 && length <= SafetensorsHeader.MAX_HEADER_BYTES && start.get() == '{';
    } catch (IOException e) {
      throw new UncheckedIOException(file + " cannot be read", e);
    }
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
      // Whoever reads it says what is wrong with it.
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
