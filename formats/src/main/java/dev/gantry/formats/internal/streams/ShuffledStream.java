// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.formats.internal.order.MixingAdvice;
import dev.gantry.formats.internal.order.ShuffleDraws;
import dev.gantry.formats.internal.order.ShuffleDraws.Pause;
import dev.gantry.formats.internal.streams.StreamCursor.Shuffled;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// Mixes the records of a stream by a shuffle buffer, which gives a random one of its records and fills the
/// slot with the stream's next record ([ShuffleDraws]).
///
/// The buffer is bounded in records and in bytes, and is filled before the first record is given. When
/// later records turn out to be longer, it shrinks to half as many records by pauses in reading, which are
/// part of a cursor. To continue from a cursor, the buffer's contents are computed, and the records are
/// read again from the oldest one on: about n · ln n records for a buffer of n, since some records stay in
/// the buffer for long.
final class ShuffledStream implements Records {
  /// How many records lie between two positions from which reading again can begin.
  private static final int SECTION_RECORDS = 256;

  private final RecordStream stream;
  private final ShuffleDraws order;
  private final int mostRecords;
  private final long mostBytes;
  private final RecordHeap heap = new RecordHeap();
  private final List<@Nullable Slot> slots = new ArrayList<>();

  /// The sections of the stream, from the section with the buffer's oldest record on.
  private final Deque<Section> sections = new ArrayDeque<>();

  private final List<Pause> pauses;
  private final StreamCursor begin;
  private final MixingAdvice mixing;
  private int filled;

  /// How many files the buffer was first filled from. If it was filled again from a cursor, this
  /// is not known, and the field has the largest `int`.
  private int filledFrom = Integer.MAX_VALUE;

  /// How many records the stream has given.
  private long read;

  private long draws;

  /// The slot of the last draw; -1 before the first draw and after the last one.
  private int given = -1;

  /// A section of consecutive records of the stream.
  private static final class Section {
    final StreamCursor from;
    final long firstRecord;

    /// How many of the section's records are in the buffer.
    int waiting;

    Section(StreamCursor from, long firstRecord) {
      this.from = from;
      this.firstRecord = firstRecord;
    }
  }

  private record Slot(RecordHeap.Entry entry, Section section) {}

  /// @param stream stands at the cursor's position; this closes it, also if the constructor fails
  /// @throws MisuseException if no buffer of this size can have that cursor
  ShuffledStream(
      RecordStream stream,
      ShuffleDraws order,
      TfRecordOptions options,
      StreamCursor from,
      MixingAdvice mixing) {
    this.stream = stream;
    this.order = order;
    this.mixing = mixing;
    mostRecords = options.shuffleRecords();
    mostBytes = options.shuffleBytes();
    begin = from;
    Shuffled shuffled = from.shuffled().orElseThrow();
    pauses = new ArrayList<>(shuffled.pauses());
    filled = shuffled.filled();
    draws = shuffled.draws();
    read = shuffled.fromRecord();
    if (draws > 0) {
      Cleanup.orUndo(() -> refill(contents(order, mostRecords, from)), this::close);
    }
  }

  /// Returns the numbers of the buffer's records by slot; -1 for the slot of the record that was given
  /// last.
  ///
  /// @param mostRecords the most records that a buffer holds
  /// @throws MisuseException if no such buffer can have the cursor
  static long[] contents(ShuffleDraws order, int mostRecords, StreamCursor cursor) {
    Shuffled shuffled = cursor.shuffled().orElseThrow();
    try {
      if (shuffled.filled() <= mostRecords) {
        long[] contents = order.contents(shuffled.filled(), shuffled.pauses(), shuffled.draws());
        if (LongStream.of(contents).allMatch(n -> n < 0 || n >= shuffled.fromRecord())) {
          return contents;
        }
      }
    } catch (IllegalArgumentException | ArithmeticException _) {
      // The cursor has numbers that no buffer can have.
    }
    throw StreamCursor.noCursor(cursor.toText());
  }

  private void refill(long[] contents) {
    Map<Long, Integer> places = new HashMap<>();
    for (int slot = 0; slot < contents.length; slot++) {
      slots.add(null);
      if (contents[slot] < 0) {
        given = slot;
      } else {
        places.put(contents[slot], slot);
      }
    }
    long end = ShuffleDraws.read(filled, pauses, draws);
    while (read < end) {
      if (!advance()) {
        throw new MisuseException(
            "the state says that " + end + " records were read, but the files have only " + read);
      }
      Integer slot = places.get(read - 1);
      if (slot != null) {
        slots.set(slot, keep());
      }
    }
  }

  @Override
  public boolean next() {
    if (draws == 0) {
      fill();
    } else if (given >= 0) {
      replaceGiven();
    }
    if (slots.isEmpty()) {
      return false;
    }
    given = order.slot(draws, slots.size());
    draws++;
    Objects.requireNonNull(slots.get(given)).section().waiting--;
    while (sections.size() > 1 && sections.getFirst().waiting == 0) {
      sections.removeFirst();
    }
    return true;
  }

  private void fill() {
    while (slots.size() < mostRecords && heap.bytes() < mostBytes && advance()) {
      slots.add(keep());
    }
    filled = slots.size();
    filledFrom = stream.cursor().nextFile();
  }

  /// Fills the slot of the last draw with the stream's next record, or in a pause with the last slot's
  /// record.
  private void replaceGiven() {
    Slot old = slots.get(given);
    if (old != null) {
      heap.remove(old.entry());
    }
    if (pauses() || !advance(slots.size())) {
      Slot last = slots.removeLast();
      if (given < slots.size()) {
        slots.set(given, last);
      }
    } else {
      slots.set(given, keep());
    }
    given = -1;
  }

  /// Returns whether reading pauses after the last draw, since the buffer's records have too many
  /// bytes; begins a pause if needed.
  private boolean pauses() {
    boolean paused = !pauses.isEmpty() && pauses.getLast().covers(draws - 1);
    if (!paused && heap.bytes() > mostBytes) {
      pauses.add(new Pause(draws - 1, slots.size() / 2));
      return true;
    }
    return paused;
  }

  /// @param left how many draws are still to come; if the stream has ended, a pause covers all of
  ///     them
  private boolean advance(int left) {
    boolean found = advance();
    if (!found) {
      pauses.add(new Pause(draws - 1, left));
    }
    return found;
  }

  /// Goes to the stream's next record.
  private boolean advance() {
    boolean begins = read % SECTION_RECORDS == 0;
    Optional<StreamCursor> from = begins ? Optional.of(stream.cursor()) : Optional.empty();
    if (!stream.next()) {
      return false;
    }
    from.ifPresent(cursor -> sections.add(new Section(cursor, read)));
    read++;
    if (filled > 0) {
      mixing.ofBuffer(filled, filledFrom, read);
    }
    return true;
  }

  /// Keeps the stream's current record.
  private Slot keep() {
    Section section = sections.getLast();
    section.waiting++;
    return new Slot(heap.add(stream.record()), section);
  }

  @Override
  public StreamRecord record() {
    Slot slot = given < 0 ? null : slots.get(given);
    if (slot == null) {
      throw new MisuseException("the stream of records has not begun, or has ended");
    }
    return heap.record(slot.entry());
  }

  /// Returns the number of the buffer's records once the stream has ended, else empty.
  @Override
  public OptionalLong left() {
    boolean ended = draws > 0 && pauses.stream().mapToLong(Pause::draws).sum() == filled;
    return ended
        ? OptionalLong.of(given < 0 ? slots.size() : slots.size() - 1)
        : OptionalLong.empty();
  }

  @Override
  public StreamCursor cursor() {
    if (draws == 0) {
      return begin;
    }
    Section oldest = sections.getFirst();
    // A pause at the stream's end is left out, since reading again finds the end again.
    List<Pause> before = pauses.stream().filter(pause -> pause.first() < draws - 1).toList();
    return oldest.from.with(new Shuffled(oldest.firstRecord, draws, filled, before));
  }

  @Override
  public void close() {
    try (stream) {
      slots.stream().filter(Objects::nonNull).forEach(slot -> heap.remove(slot.entry()));
      slots.clear();
      heap.close();
    }
  }
}
