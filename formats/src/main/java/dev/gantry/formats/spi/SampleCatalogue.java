package dev.gantry.formats.spi;

import dev.gantry.core.Location;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.BatchView;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Samples in files that are reached by number. What it says never changes. Thread-safe.
///
/// Samples are numbered per shard, from 0. The values of a field that are in files lie, for
/// consecutive samples of a shard, at ascending offsets of one file. Nothing is asked about samples
/// that a shard does not have, nor about the values of a field that have no bytes.
public interface SampleCatalogue extends AutoCloseable {
  /// What each sample has, in the order of [BatchView#fields].
  List<Field> fields();

  /// Samples of each shard, 0 or more.
  List<Long> shardSamples();

  /// Tells this dataset from others, and from itself once its files have changed: their names and
  /// sizes, say. It should not depend on the folder they are in, nor on which fields are chosen.
  String identity();

  /// Where the values of a field come from.
  ///
  /// @param field an index into [#fields], as everywhere here
  FieldSource source(int field);

  /// The most bytes that a sample's values, of all fields that are [FieldSource.Filed], are spread
  /// over, from the first one's start to the last one's end. It bounds the memory of a batch where
  /// the values of a sample lie together. [Long#MAX_VALUE] where they do not.
  default long sampleSpan() {
    return Long.MAX_VALUE;
  }

  /// Where the values of consecutive samples lie, for a field that is [FieldSource.Filed].
  ///
  /// @param sink gets them in order, in as few pieces as there can be
  void pieces(int field, SampleRun run, PieceSink sink);

  /// Writes the values of consecutive samples, for a field that is [FieldSource.HostWritten]. Several
  /// threads may call it at once.
  ///
  /// @param target where to: at `offset` in C order, little endian, end to end
  void make(int field, SampleRun run, MemorySegment target, long offset);

  /// Called when one of the files is opened, or opened again. Several threads may call it at once.
  ///
  /// @throws dev.gantry.core.MalformedFileException if it is not the file whose values
  ///     [#pieces] tells of
  default void opened(Location file, Object identity) {}

  /// Called once, when nothing is asked or made any more.
  @Override
  default void close() {}

  /// Takes the places of values.
  @FunctionalInterface
  interface PieceSink {
    /// @param offset of the first value in bytes from the start of the file
    /// @param samples whose values lie end to end from there, 1 or more
    void piece(Location file, long offset, int samples);
  }
}
