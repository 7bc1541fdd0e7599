// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SequencedMap;

/// Reads the notes of an index, of which nothing is believed before their checksum is right.
final class IndexNotesParser {
  private final Path index;
  private final SequencedMap<String, String> notes;

  /// @param notes in the order of the header
  IndexNotesParser(Path index, SequencedMap<String, String> notes) {
    this.index = index;
    this.notes = notes;
  }

  /// @throws MalformedFileException if it is no index, or damaged; what an unknown version has to
  ///     say is not looked at
  long version() {
    if (!IndexFormat.FORMAT.equals(notes.get(IndexNotes.FORMAT))) {
      throw malformed("not-an-index", "a safetensors file, but no index of a TFRecord file");
    }
    return number(IndexNotes.VERSION, 0, Long.MAX_VALUE);
  }

  /// Of [IndexFormat#VERSION].
  IndexNotes parse() {
    int sum = IndexNotes.checksum(notes);
    if (sum != checksum(IndexNotes.CHECKSUM)) {
      throw malformed(
          "checksum-mismatch",
          "the notes have CRC32C "
              + IndexNotes.digits(sum)
              + ", and say "
              + notes.get(IndexNotes.CHECKSUM));
    }
    long size = number(IndexNotes.FILE_SIZE, 0, Long.MAX_VALUE);
    long modified = number(IndexNotes.FILE_MODIFIED, Long.MIN_VALUE, Long.MAX_VALUE);
    long records = number(IndexNotes.RECORDS, 0, size / IndexFormat.FRAMING_BYTES);
    Map<String, Integer> checksums = new HashMap<>();
    for (String note : notes.keySet()) {
      if (note.startsWith(IndexNotes.TENSOR_CHECKSUM)) {
        checksums.put(note.substring(IndexNotes.TENSOR_CHECKSUM.length()), checksum(note));
      }
    }
    return new IndexNotes(new FileStamp(size, modified), records, features(records), checksums);
  }

  private List<TfRecordIndex.Feature> features(long records) {
    List<String> names =
        notes.keySet().stream()
            .filter(note -> IndexFormat.isPart(note, IndexNotes.NUMBER))
            .map(note -> IndexFormat.feature(note, IndexNotes.NUMBER))
            .toList();
    TfRecordIndex.Feature[] features = new TfRecordIndex.Feature[names.size()];
    for (String name : names) {
      int number = (int) number(IndexFormat.tensor(name, IndexNotes.NUMBER), 0, names.size() - 1L);
      features[number] = feature(name, records);
    }
    if (Arrays.asList(features).contains(null)) {
      throw malformed("invalid-note", "two features of the same number");
    }
    return List.of(features);
  }

  private TfRecordIndex.Feature feature(String name, long records) {
    String kindNote = IndexFormat.tensor(name, IndexNotes.KIND);
    Optional<FeatureSpec.Kind> kind = Optional.ofNullable(notes.get(kindNote)).map(this::kind);
    long missing = number(IndexFormat.tensor(name, IndexNotes.MISSING), 0, records);
    Optional<Obstacle> obstacle =
        Optional.ofNullable(notes.get(IndexFormat.tensor(name, IndexNotes.OBSTACLE)))
            .map(reason ->
                new Obstacle(
                    number(
                        IndexFormat.tensor(name, IndexNotes.OBSTACLE_RECORD),
                        0,
                        Math.max(0, records - 1)),
                    reason));
    String elementsNote = IndexFormat.tensor(name, IndexNotes.ELEMENTS);
    OptionalLong elements = OptionalLong.empty();
    if (notes.containsKey(elementsNote)) {
      if (kind.isEmpty() || obstacle.isPresent() || missing > 0) {
        throw malformed("invalid-note", "'" + elementsNote + "' of what is not in all records");
      }
      long most =
          switch (kind.get()) {
            case BYTES -> Integer.MAX_VALUE;
            case FLOAT -> Integer.MAX_VALUE / Float.BYTES;
            case INT64 -> TfRecordIndex.Options.MOST_VALUES;
          };
      elements = OptionalLong.of(number(elementsNote, 0, most));
    } else if (obstacle.isEmpty() && records > 0) {
      throw malformed("invalid-note", "'" + elementsNote + "' is missing");
    }
    return new TfRecordIndex.Feature(name, kind, missing, elements, obstacle);
  }

  private FeatureSpec.Kind kind(String text) {
    return IndexFormat.kind(text)
        .orElseThrow(() -> malformed("invalid-note", "no kind of feature: '" + text + "'"));
  }

  private long number(String note, long least, long most) {
    String text = notes.getOrDefault(note, "");
    try {
      long number = Long.parseLong(text);
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException _) {
      // As a number out of range.
    }
    throw malformed(
        "invalid-note",
        "'" + note + "' is '" + text + "', no number from " + least + " to " + most);
  }

  private int checksum(String note) {
    String text = notes.getOrDefault(note, "");
    if (!text.matches("[0-9a-f]{8}")) {
      throw malformed("invalid-note", "'" + note + "' is '" + text + "', not 8 digits");
    }
    return Integer.parseUnsignedInt(text, 16);
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(index, 0, kind, detail);
  }
}
