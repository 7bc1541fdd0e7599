package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// Where a [RecordStream] stands between two records. Files are known by their place in the epoch's
/// order.
///
/// @param nextFile the next one to be opened
/// @param place whose turn it is
/// @param left records that the turn still has
/// @param skipped faults that were passed over so far
/// @param places what each reads from
record StreamCursor(int nextFile, int place, int left, long skipped, List<Place> places)
    implements RecordCursor {
  /// A file that is open.
  ///
  /// @param file -1 where there is none: the next one is opened when its turn comes
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
          "next="
              + NUMBER
              + ";place="
              + NUMBER
              + ";left="
              + NUMBER
              + ";skipped="
              + LONG_NUMBER
              + ";open=([0-9@#,-]+)");
  private static final Pattern PLACE =
      Pattern.compile(NUMBER + "@" + LONG_NUMBER + "#" + LONG_NUMBER);

  StreamCursor {
    places = List.copyOf(places);
  }

  static StreamCursor start(int open, int block) {
    return new StreamCursor(0, 0, block, 0, Collections.nCopies(open, Place.NONE));
  }

  @Override
  public String toText() {
    return "next="
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

  /// @param files how many there are
  /// @param open places
  /// @param block records of a turn
  /// @throws MisuseException if the text is no cursor of such a stream
  static StreamCursor parse(String text, int files, int open, int block) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw noCursor(text);
    }
    List<Place> places = new ArrayList<>();
    for (String place : matcher.group(5).split(",", -1)) {
      places.add(place(place, text));
    }
    StreamCursor cursor =
        new StreamCursor(
            Integer.parseInt(matcher.group(1)),
            Integer.parseInt(matcher.group(2)),
            Integer.parseInt(matcher.group(3)),
            Long.parseLong(matcher.group(4)),
            places);
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

  private static MisuseException noCursor(String text) {
    return new MisuseException("no cursor of these files: '" + text + "'");
  }
}
