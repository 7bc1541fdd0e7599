// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.SortedMap;
import java.util.TreeMap;

/// The notes (`__metadata__`) of an index.
///
/// @param stamp the stamp of the indexed file
/// @param recordsSum the CRC32C of all records' data; empty if an older version wrote the index
/// @param checksums the CRC32C of each tensor's bytes
public record IndexNotes(
    FileStamp stamp,
    long records,
    OptionalInt recordsSum,
    List<TfRecordIndex.Feature> features,
    Map<String, Integer> checksums) {
  private static final String FORMAT = "format";

  /// The descriptions of indexed files, by the formats of their indexes.
  private static final Map<String, String> INDEXED =
      Map.of(
          IndexFormat.FORMAT, OtherFormats.TFRECORD, "gantry-webdataset-index", OtherFormats.TAR);

  private static final String VERSION = "version";
  private static final String FILE_SIZE = "file_size";
  private static final String FILE_MODIFIED = "file_mtime_ns";
  private static final String FILE_VERSION = "file_version";
  private static final String RECORDS = "records";
  private static final String RECORDS_SUM = "records_crc32c";
  private static final String CHECKSUM = "crc32c";
  private static final String TENSOR_CHECKSUM = "crc32c/";
  private static final String NUMBER = "number";
  private static final String KIND = "kind";
  private static final String MISSING = "missing";
  private static final String ELEMENTS = "elements";
  private static final String OBSTACLE = "obstacle";
  private static final String OBSTACLE_RECORD = "obstacle-record";

  public IndexNotes {
    features = List.copyOf(features);
    checksums = Map.copyOf(checksums);
  }

  /// Returns the notes as they are written, with their own checksum.
  SortedMap<String, String> toNotes() {
    SortedMap<String, String> notes = new TreeMap<>();
    notes.put(RECORDS, Long.toString(records));
    recordsSum.ifPresent(sum -> notes.put(RECORDS_SUM, digits(sum)));
    for (int number = 0; number < features.size(); number++) {
      put(notes, number, features.get(number));
    }
    return complete(notes, IndexFormat.FORMAT, IndexFormat.VERSION, stamp, checksums);
  }

  /// Returns notes with those that every index has: format, version, the stamp of the indexed file, and the
  /// checksums of the tensors and of the notes.
  public static SortedMap<String, String> complete(
      SortedMap<String, String> own,
      String format,
      long version,
      FileStamp stamp,
      Map<String, Integer> checksums) {
    SortedMap<String, String> notes = new TreeMap<>(own);
    notes.put(FORMAT, format);
    notes.put(VERSION, Long.toString(version));
    notes.put(FILE_SIZE, Long.toString(stamp.size()));
    notes.put(FILE_MODIFIED, Long.toString(stamp.modified()));
    if (!stamp.version().isEmpty()) {
      notes.put(FILE_VERSION, stamp.version());
    }
    checksums.forEach((tensor, sum) -> notes.put(TENSOR_CHECKSUM + tensor, digits(sum)));
    notes.put(CHECKSUM, digits(checksum(notes)));
    return notes;
  }

  private static void put(Map<String, String> notes, int number, TfRecordIndex.Feature feature) {
    String name = feature.name();
    notes.put(IndexFormat.tensor(name, NUMBER), Integer.toString(number));
    notes.put(IndexFormat.tensor(name, MISSING), Long.toString(feature.missing()));
    feature
        .kind()
        .ifPresent(kind -> notes.put(IndexFormat.tensor(name, KIND), IndexFormat.text(kind)));
    feature
        .elements()
        .ifPresent(count -> notes.put(IndexFormat.tensor(name, ELEMENTS), Long.toString(count)));
    feature
        .obstacle()
        .ifPresent(obstacle -> {
          notes.put(IndexFormat.tensor(name, OBSTACLE_RECORD), Long.toString(obstacle.record()));
          notes.put(IndexFormat.tensor(name, OBSTACLE), obstacle.reason());
        });
  }

  /// Computes the checksum of all notes except its own: each key and value in the order of the header, each
  /// followed by a zero byte.
  static int checksum(Map<String, String> notes) {
    int sum = Crc32c.OF_NOTHING;
    for (Map.Entry<String, String> note : notes.entrySet()) {
      if (!note.getKey().equals(CHECKSUM)) {
        byte[] text =
            (note.getKey() + '\0' + note.getValue() + '\0').getBytes(StandardCharsets.UTF_8);
        sum = Crc32c.combine(sum, Crc32c.of(MemorySegment.ofArray(text)), text.length);
      }
    }
    return sum;
  }

  static String digits(int checksum) {
    return String.format(Locale.ROOT, "%08x", checksum);
  }

  TfRecordIndex.Summary summary() {
    long framing = records * IndexFormat.FRAMING_BYTES;
    return new TfRecordIndex.Summary(records, stamp.size() - framing, features);
  }

  /// Parses the notes of an index, whose checksum it compares before it uses anything else.
  public static final class Parser {
    private final Location index;
    private final SequencedMap<String, String> notes;

    /// @param notes the notes in the order of the header
    public Parser(Location index, SequencedMap<String, String> notes) {
      this.index = index;
      this.notes = notes;
    }

    /// @throws MalformedFileException if the file is no index, or its notes are damaged; notes of an
    ///     unknown version are not parsed further
    public long version(String format) {
      if (!format.equals(notes.get(FORMAT))) {
        String other = INDEXED.get(notes.getOrDefault(FORMAT, ""));
        throw malformed(
            "not-an-index",
            other == null
                ? "the file is safetensors, but not of the format " + format
                : "this is the index of a file that is " + other);
      }
      return number(VERSION, 0, Long.MAX_VALUE);
    }

    /// Compares the checksum of the notes.
    ///
    /// @throws MalformedFileException of kind `checksum-mismatch`
    public void requireSum() {
      int sum = IndexNotes.checksum(notes);
      if (sum != checksum(CHECKSUM)) {
        throw malformed(
            "checksum-mismatch",
            "the notes have CRC32C " + digits(sum) + ", and say " + notes.get(CHECKSUM));
      }
    }

    /// The stamp of the indexed file.
    public FileStamp stamp() {
      return new FileStamp(
          number(FILE_SIZE, 0, Long.MAX_VALUE),
          number(FILE_MODIFIED, Long.MIN_VALUE, Long.MAX_VALUE),
          notes.getOrDefault(FILE_VERSION, ""));
    }

    /// The checksums of the tensors, by their names.
    public Map<String, Integer> checksums() {
      Map<String, Integer> checksums = new HashMap<>();
      for (String note : notes.keySet()) {
        if (note.startsWith(TENSOR_CHECKSUM)) {
          checksums.put(note.substring(TENSOR_CHECKSUM.length()), checksum(note));
        }
      }
      return checksums;
    }

    /// Parses notes of [IndexFormat#VERSION].
    IndexNotes parse() {
      requireSum();
      FileStamp stamp = stamp();
      long records = number(RECORDS, 0, stamp.size() / IndexFormat.FRAMING_BYTES);
      OptionalInt recordsSum =
          notes.containsKey(RECORDS_SUM)
              ? OptionalInt.of(checksum(RECORDS_SUM))
              : OptionalInt.empty();
      return new IndexNotes(stamp, records, recordsSum, features(records), checksums());
    }

    private List<TfRecordIndex.Feature> features(long records) {
      List<String> names =
          notes.keySet().stream()
              .filter(note -> IndexFormat.isPart(note, NUMBER))
              .map(note -> IndexFormat.feature(note, NUMBER))
              .toList();
      TfRecordIndex.Feature[] features = new TfRecordIndex.Feature[names.size()];
      for (String name : names) {
        int number = (int) number(IndexFormat.tensor(name, NUMBER), 0, names.size() - 1L);
        features[number] = feature(name, records);
      }
      if (Arrays.asList(features).contains(null)) {
        throw malformed("invalid-note", "two features have the same number");
      }
      return List.of(features);
    }

    private TfRecordIndex.Feature feature(String name, long records) {
      String kindNote = IndexFormat.tensor(name, KIND);
      Optional<FeatureSpec.Kind> kind = Optional.ofNullable(notes.get(kindNote)).map(this::kind);
      long missing = number(IndexFormat.tensor(name, MISSING), 0, records);
      Optional<Obstacle> obstacle =
          Optional.ofNullable(notes.get(IndexFormat.tensor(name, OBSTACLE)))
              .map(reason ->
                  new Obstacle(
                      number(
                          IndexFormat.tensor(name, OBSTACLE_RECORD), 0, Math.max(0, records - 1)),
                      reason));
      String elementsNote = IndexFormat.tensor(name, ELEMENTS);
      OptionalLong elements = OptionalLong.empty();
      if (notes.containsKey(elementsNote)) {
        if (kind.isEmpty() || obstacle.isPresent() || missing > 0) {
          throw malformed(
              "invalid-note",
              "'" + elementsNote + "' is given for a feature that some records lack");
        }
        long most =
            switch (kind.get()) {
              case BYTES -> Integer.MAX_VALUE;
              case FLOAT -> Integer.MAX_VALUE / Float.BYTES;
              case INT64 -> TfRecordIndex.Options.MAX_VALUES;
            };
        elements = OptionalLong.of(number(elementsNote, 0, most));
      } else if (obstacle.isEmpty() && records > 0) {
        throw malformed("invalid-note", "'" + elementsNote + "' is missing");
      }
      return new TfRecordIndex.Feature(name, kind, missing, elements, obstacle);
    }

    private FeatureSpec.Kind kind(String text) {
      return IndexFormat.kind(text)
          .orElseThrow(() -> malformed("invalid-note", "'" + text + "' is not a kind of feature"));
    }

    public long number(String note, long least, long most) {
      String text = notes.getOrDefault(note, "");
      try {
        long number = Long.parseLong(text);
        if (number >= least && number <= most) {
          return number;
        }
      } catch (NumberFormatException _) {
        // The number is refused like one that is out of range.
      }
      throw malformed(
          "invalid-note",
          "'"
              + note
              + "' must be a number from "
              + least
              + " to "
              + most
              + " (was '"
              + text
              + "')");
    }

    private int checksum(String note) {
      String text = notes.getOrDefault(note, "");
      if (!text.matches("[0-9a-f]{8}")) {
        throw malformed("invalid-note", "'" + note + "' is '" + text + "', not 8 digits");
      }
      return Integer.parseUnsignedInt(text, 16);
    }

    public MalformedFileException malformed(String kind, String detail) {
      return new MalformedFileException(index, 0, kind, detail);
    }
  }
}
