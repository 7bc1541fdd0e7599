package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.order.ShuffleDraws.Pause;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// Where a [ShuffledStream] stands between two records.
///
/// @param from where to read again, so that all that the buffer holds comes
/// @param fromRecord the number of the record there, from 0
/// @param draws made so far
/// @param filled records that were read before the first draw; 0 before that
/// @param pauses behind draws, in which nothing was read
record ShuffledCursor(
    StreamCursor from, long fromRecord, long draws, int filled, List<Pause> pauses)
    implements RecordCursor {
  private static final String LONG_NUMBER = "(\\d{1,18})";
  private static final Pattern TEXT =
      Pattern.compile(
          "record="
              + LONG_NUMBER
              + ";draws="
              + LONG_NUMBER
              + ";filled=(\\d{1,9});pauses=([0-9+,]*);(.*)");
  private static final Pattern PAUSE = Pattern.compile(LONG_NUMBER + "\\+" + LONG_NUMBER);

  ShuffledCursor {
    pauses = List.copyOf(pauses);
  }

  static ShuffledCursor start(StreamCursor from) {
    return new ShuffledCursor(from, 0, 0, 0, List.of());
  }

  @Override
  public String toText() {
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
        + ";"
        + from.toText();
  }

  /// The other parameters are those of [StreamCursor#parse].
  ///
  /// @throws MisuseException if the text is no cursor of such a stream
  static ShuffledCursor parse(String text, int files, int open, int block) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw noCursor(text);
    }
    List<Pause> pauses = new ArrayList<>();
    for (String pause : matcher.group(4).split(",", -1)) {
      Matcher parts = PAUSE.matcher(pause);
      if (parts.matches()) {
        pauses.add(new Pause(Long.parseLong(parts.group(1)), Long.parseLong(parts.group(2))));
      } else if (!pause.isEmpty()) {
        throw noCursor(text);
      }
    }
    return new ShuffledCursor(
        StreamCursor.parse(matcher.group(5), files, open, block),
        Long.parseLong(matcher.group(1)),
        Long.parseLong(matcher.group(2)),
        Integer.parseInt(matcher.group(3)),
        pauses);
  }

  static MisuseException noCursor(String text) {
    return new MisuseException("no cursor of these files and this shuffle: '" + text + "'");
  }
}
