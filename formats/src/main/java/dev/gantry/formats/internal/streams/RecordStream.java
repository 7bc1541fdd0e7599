// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.SkippedFaults;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Interleaves the records of several files. A fixed number of places each hold an open file. The
/// places take turns; in a turn, a place's file gives a block of records, or its last records.
/// When a file has ended, the next file is opened in its place at the place's next turn. Not
/// thread-safe.
final class RecordStream implements Records {
  private final GantrySession session;
  private final List<Location> files;
  private final TfRecordOptions options;
  private final int block;
  private final SkippedFaults skipped;
  private final AtomicInteger open;
  private final List<Place> places = new ArrayList<>();
  private int nextFile;
  private int place;
  private int left;
  private @Nullable SharedReader current;

  /// A place holds an open file, or a file that is to be opened at a position.
  private static final class Place {
    private int file;
    private TfRecordReader.Position from;
    private @Nullable SharedReader reader;

    Place(StreamCursor.Place place) {
      file = place.file();
      from = place.position();
    }

    StreamCursor.Place cursor() {
      return new StreamCursor.Place(file, reader == null ? from : reader.reader().position());
    }

    void open(int number) {
      file = number;
      from = TfRecordReader.Position.START;
    }

    void close() {
      file = -1;
      from = TfRecordReader.Position.START;
      SharedReader open = reader;
      reader = null;
      if (open != null) {
        open.release();
      }
    }
  }

  /// @param files the files in the epoch's order
  /// @param block how many records a turn has
  /// @param open counts the files of all streams that are open
  RecordStream(
      GantrySession session,
      List<Location> files,
      TfRecordOptions options,
      int block,
      SkippedFaults skipped,
      AtomicInteger open,
      StreamCursor from) {
    this.session = session;
    this.files = files;
    this.options = options;
    this.block = block;
    this.skipped = skipped;
    this.open = open;
    nextFile = from.nextFile();
    place = from.place();
    left = from.left();
    from.places().forEach(each -> places.add(new Place(each)));
  }

  @Override
  public boolean next() {
    current = null;
    int closed = 0;
    while (closed < places.size()) {
      Place at = places.get(place);
      boolean given = left < block;
      if (left > 0 && (at.file >= 0 || (!given && takesNext(at)))) {
        SharedReader reader = reader(at);
        if (reader.next()) {
          left--;
          current = reader;
          return true;
        }
        at.close();
        if (!given) {
          // The file had already ended with its last block, so its successor takes this turn.
          continue;
        }
      } else if (at.file < 0 && !given) {
        closed++;
      }
      left = block;
      place = place + 1 == places.size() ? 0 : place + 1;
    }
    return false;
  }

  private boolean takesNext(Place at) {
    if (nextFile == files.size()) {
      return false;
    }
    at.open(nextFile++);
    return true;
  }

  private SharedReader reader(Place at) {
    SharedReader reader = at.reader;
    if (reader == null) {
      reader =
          SharedReader.open(
              session, files.get(at.file), options, at.from, skipped, open, places.size());
      at.reader = reader;
    }
    return reader;
  }

  @Override
  public StreamRecord record() {
    if (current == null) {
      throw new MisuseException("the stream of records has not begun, or has ended");
    }
    return current.record();
  }

  /// Returns empty, since only reading tells how many records follow.
  @Override
  public OptionalLong left() {
    return OptionalLong.empty();
  }

  @Override
  public StreamCursor cursor() {
    return new StreamCursor(
        nextFile,
        place,
        left,
        skipped.count(),
        places.stream().map(Place::cursor).toList(),
        Optional.empty());
  }

  @Override
  public void close() {
    Cleanup.forEach(places, Place::close);
  }
}
