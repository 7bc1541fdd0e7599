// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.order.ShuffleDraws.Pause;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// The position of [Records] between two records. Files are numbered by their place in the epoch's order.
///
/// @param nextFile the number of the next file to open
/// @param place the place whose turn it is
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

  private static final String NUMBER = "(\\d{1,9})";
  private static final String LONG_NUMBER = "(\\d{1,18})";
  private static final Pattern TEXT =
      Pattern.compile(
          "(?:record="
              + LONG_NUMBER
              + ";draws="
              + LONG_NUMBER
              + ";filled="
              + NUMBER
              + ";pauses=([0-9+,]*);)?next="
              + NUMBER
              + ";place="
              + NUMBER
              + ";left="
              + NUMBER
              + ";skipped="
              + LONG_NUMBER
              + ";open=([0-9@#,-]+)");
  private static final Pattern PAUSE = Pattern.compile(LONG_NUMBER + "\\+" + LONG_NUMBER);
  private static final Pattern PLACE =
      Pattern.compile(NUMBER + "@" + LONG_NUMBER + "#" + LONG_NUMBER);

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
  /// @param block records of a turn
  /// @param shuffled whether the stream is shuffled
  /// @throws MisuseException if the text is no cursor of such a stream
  static StreamCursor parse(String text, int files, int open, int block, boolean shuffled) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches() || shuffled != (matcher.group(1) != null)) {
      throw noCursor(text);
    }
    List<Place> places = new ArrayList<>();
    for (String place : matcher.group(9).split(",", -1)) {
      places.add(place(place, text));
    }
    StreamCursor cursor =
        new StreamCursor(
            Integer.parseInt(matcher.group(5)),
            Integer.parseInt(matcher.group(6)),
            Integer.parseInt(matcher.group(7)),
            Long.parseLong(matcher.group(8)),
            places,
            shuffled ? Optional.of(shuffled(matcher, text)) : Optional.empty());
    boolean fits =
        cursor.nextFile <= files
            && cursor.place < open
            && cursor.left <= block
            && places.size() == open
            && places.stream().allMatch(place -> place.file < cursor.nextFile);
    if (!fits) {
      throw noCursor(text);
    }
    return cursor;
  }

  private static Shuffled shuffled(Matcher matcher, String text) {
    List<Pause> pauses = new ArrayList<>();
    for (String pause : matcher.group(4).split(",", -1)) {
      Matcher parts = PAUSE.matcher(pause);
      if (parts.matches()) {
        pauses.add(new Pause(Long.parseLong(parts.group(1)), Long.parseLong(parts.group(2))));
      } else if (!pause.isEmpty()) {
        throw noCursor(text);
      }
    }
    return new Shuffled(
        Long.parseLong(matcher.group(1)),
        Long.parseLong(matcher.group(2)),
        Integer.parseInt(matcher.group(3)),
        pauses);
  }

  private static Place place(String place, String text) {
    if (place.equals("-")) {
      return Place.NONE;
    }
    Matcher matcher = PLACE.matcher(place);
    if (!matcher.matches()) {
      throw noCursor(text);
    }
    return new Place(
        Integer.parseInt(matcher.group(1)),
        new TfRecordReader.Position(
            Long.parseLong(matcher.group(2)), Long.parseLong(matcher.group(3))));
  }

  static MisuseException noCursor(String text) {
    return new MisuseException("no cursor of these files and this shuffle: '" + text + "'");
  }
}
