// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.order.ShuffleDraws.Pause;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A position in [Records] between two records. Files are numbered in the epoch's order, from 0.
///
/// @param nextFile the number of the next file to open
/// @param place the number of the place whose turn it is
/// @param left how many records the turn still has
/// @param skipped how many faults were skipped so far
/// @param places the file and position that each place reads from
/// @param shuffled the position of the shuffle buffer; empty without one
record StreamCursor(
    int nextFile,
    int place,
    int left,
    long skipped,
    List<Place> places,
    Optional<Shuffled> shuffled) {
  /// The position of a [ShuffledStream]. The stream's places are then those from which reading again brings
  /// all records of the buffer.
  ///
  /// @param fromRecord the number of the record at those places, from 0
  /// @param draws how many draws were made so far
  /// @param filled how many records were read before the first draw; 0 if there was no draw yet
  /// @param pauses the draws after which no record was read
  record Shuffled(long fromRecord, long draws, int filled, List<Pause> pauses) {
    static final Shuffled START = new Shuffled(0, 0, 0, List.of());

    Shuffled {
      pauses = List.copyOf(pauses);
    }

    String toText() {
      return "record="
          + fromRecord
          + ";draws="
          + draws
          + ";filled="
          + filled
          + ";pauses="
          + pauses.stream()
              .map(pause -> pause.first() + "+" + pause.draws())
              .collect(Collectors.joining(","))
          + ";";
    }
  }

  /// A file that is open.
  ///
  /// @param file the file's number; -1 if the next file is to be opened at the place's next turn
  record Place(int file, TfRecordReader.Position position) {
    static final Place NONE = new Place(-1, TfRecordReader.Position.START);

    String toText() {
      return file < 0 ? "-" : file + "@" + position.offset() + "#" + position.number();
    }
  }

  /// The largest number of a text; the sum of two does not overflow.
  private static final long MAX_NUMBER = 999_999_999_999_999_999L;

  StreamCursor {
    places = List.copyOf(places);
  }

  static StreamCursor start(int open, int block) {
    return new StreamCursor(
        0, 0, block, 0, Collections.nCopies(open, Place.NONE), Optional.empty());
  }

  StreamCursor with(Shuffled chosen) {
    return new StreamCursor(nextFile, place, left, skipped, places, Optional.of(chosen));
  }

  /// Formats the cursor as text without spaces.
  String toText() {
    return shuffled.map(Shuffled::toText).orElse("")
        + "next="
        + nextFile
        + ";place="
        + place
        + ";left="
        + left
        + ";skipped="
        + skipped
        + ";open="
        + places.stream().map(Place::toText).collect(Collectors.joining(","));
  }

  /// @param files how many files there are
  /// @param open how many places there are
  /// @param block how many records a turn has
  /// @param shuffled whether the stream is shuffled
  /// @throws MisuseException if the text is no cursor of such a stream
  static StreamCursor parse(String text, int files, int open, int block, boolean shuffled) {
    try {
      StreamCursor cursor = parse(text, shuffled);
      List<Place> places = cursor.places;
      boolean fits =
          cursor.toText().equals(text)
              && cursor.nextFile <= files
              && cursor.place < open
              && cursor.left <= block
              && places.size() == open
              && places.stream().allMatch(place -> place.file < cursor.nextFile);
      if (fits) {
        return cursor;
      }
    } catch (IllegalArgumentException | ArithmeticException | IndexOutOfBoundsException _) {
      // The text is refused like one with numbers that do not fit.
    }
    throw noCursor(text);
  }

  /// Parses a cursor; it also accepts texts that differ from the form that [#toText] writes.
  private static StreamCursor parse(String text, boolean shuffled) {
    List<String> values =
        Arrays.stream(text.split(";", -1))
            .map(member -> member.substring(member.indexOf('=') + 1))
            .toList();
    List<String> own = values.subList(shuffled ? 4 : 0, values.size());
    return new StreamCursor(
        integer(own.get(0)),
        integer(own.get(1)),
        integer(own.get(2)),
        number(own.get(3)),
        elements(own.get(4)).map(StreamCursor::place).toList(),
        shuffled ? Optional.of(shuffled(values)) : Optional.empty());
  }

  private static Shuffled shuffled(List<String> values) {
    return new Shuffled(
        number(values.get(0)),
        number(values.get(1)),
        integer(values.get(2)),
        elements(values.get(3)).map(StreamCursor::pause).toList());
  }

  private static Pause pause(String text) {
    String[] parts = text.split("\\+", -1);
    return new Pause(number(parts[0]), number(parts[1]));
  }

  private static Place place(String text) {
    if (text.equals("-")) {
      return Place.NONE;
    }
    String[] parts = text.split("[@#]", -1);
    return new Place(
        integer(parts[0]), new TfRecordReader.Position(number(parts[1]), number(parts[2])));
  }

  private static Stream<String> elements(String list) {
    return list.isEmpty() ? Stream.of() : Arrays.stream(list.split(",", -1));
  }

  private static int integer(String text) {
    return Math.toIntExact(number(text));
  }

  private static long number(String text) {
    long number = Long.parseLong(text);
    MisuseException.requireRange("number", number, 0, MAX_NUMBER);
    return number;
  }

  static MisuseException noCursor(String text) {
    return new MisuseException(
        "the state's cursor does not fit these files and this shuffle: '" + text + "'");
  }
}
