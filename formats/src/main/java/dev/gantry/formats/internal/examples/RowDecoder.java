// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.MalformedFileException;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// Decodes records into the rows of one batch. Not thread-safe: each thread needs its own
/// decoder.
public final class RowDecoder implements RecordSink {
  private final ExampleDecoder decoder;
  private final MemorySegment batch;
  private final DecodedLayout layout;
  private final long[] rows;
  private final StraightValue straight;

  /// @param batch the batch's memory, laid out as `layout` says
  /// @param rows each feature's row length in units, long enough for the records
  /// @param straight the dataset's straight value, whose rows need no copy
  public RowDecoder(
      ExampleDecoder decoder,
      MemorySegment batch,
      DecodedLayout layout,
      long[] rows,
      StraightValue straight) {
    this.decoder = decoder;
    this.batch = batch;
    this.layout = layout;
    this.rows = rows;
    this.straight = straight;
  }

  @Override
  public void accept(RawRecord record, int number) {
    ExampleReader values = decoder.read(record);
    decoder.write(record, batch, layout, rows, number, ExampleDecoder.NONE);
    straight.learn(values);
  }

  @Override
  public Optional<Straight> straight(int number, long length) {
    long start = straight.guess();
    if (start < 0 || start > length - straight.bytes()) {
      return Optional.empty();
    }
    long row = layout.offset(straight.feature(), number, rows);
    return Optional.of(new Straight(start, batch.asSlice(row, straight.bytes())));
  }

  @Override
  public boolean acceptAround(RawRecord record, int number, Straight part) {
    try {
      if (!straight.isAt(part.start(), decoder.read(record))) {
        return false;
      }
    } catch (MalformedFileException _) {
      // The reader has probably taken the other bytes in the part's place for the record's.
      return false;
    }
    decoder.write(record, batch, layout, rows, number, straight.feature());
    return true;
  }
}
