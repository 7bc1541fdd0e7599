// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.internal.commit.Crc32c;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/// What stands in the notes (`__metadata__`) of an index.
///
/// @param stamp of the file that was indexed
/// @param checksums CRC32C of each tensor's bytes
record IndexNotes(
    FileStamp stamp,
    long records,
    List<TfRecordIndex.Feature> features,
    Map<String, Integer> checksums) {
  static final String FORMAT = "format";
  static final String VERSION = "version";
  static final String FILE_SIZE = "file_size";
  static final String FILE_MODIFIED = "file_mtime_ns";
  static final String RECORDS = "records";
  static final String CHECKSUM = "crc32c";
  static final String TENSOR_CHECKSUM = "crc32c/";
  static final String NUMBER = "number";
  static final String KIND = "kind";
  static final String MISSING = "missing";
  static final String ELEMENTS = "elements";
  static final String OBSTACLE = "obstacle";
  static final String OBSTACLE_RECORD = "obstacle-record";

  IndexNotes {
    features = List.copyOf(features);
    checksums = Map.copyOf(checksums);
  }

  /// As they are written, their own checksum included.
  SortedMap<String, String> toNotes() {
    SortedMap<String, String> notes = new TreeMap<>();
    notes.put(FORMAT, IndexFormat.FORMAT);
    notes.put(VERSION, Long.toString(IndexFormat.VERSION));
    notes.put(FILE_SIZE, Long.toString(stamp.size()));
    notes.put(FILE_MODIFIED, Long.toString(stamp.modified()));
    notes.put(RECORDS, Long.toString(records));
    checksums.forEach((tensor, sum) -> notes.put(TENSOR_CHECKSUM + tensor, digits(sum)));
    for (int number = 0; number < features.size(); number++) {
      put(notes, number, features.get(number));
    }
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

  /// Of all notes but that of the checksum itself, in the order of the header: each key and value,
  /// with a zero byte behind it.
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
}
