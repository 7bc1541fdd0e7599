// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.Location;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// What a format of samples tells about one dataset: which samples there are, what each has, and
/// where the bytes of a run of samples lie or who writes them.
///
/// A catalogue's answers never change, and it is thread-safe. A dataset has one or more data files,
/// whose samples are numbered from 0. For consecutive samples of a data file, a field's values lie
/// at ascending offsets of one file. Callers ask neither for samples that a data file does not have,
/// nor for values of no bytes.
///
/// A suite, `SampleCatalogueContract`, holds an implementation to these rules.
public interface SampleCatalogue extends AutoCloseable {
  /// What each sample has, in the order of a batch's fields.
  List<Field> fields();

  /// How many samples each data file has, 0 or more.
  List<Long> fileSamples();

  /// Tells this dataset from others, and from itself once its files have changed, for example by the
  /// names and sizes of its files. It should depend neither on the folder of the files nor on which
  /// fields are chosen.
  String identity();

  /// The source of a field's values.
  ///
  /// @param field an index into [#fields], as everywhere here
  FieldSource source(int field);

  /// The most bytes that a sample's values, of all fields that are [FieldSource.InFiles], are spread
  /// over, from the first one's start to the last one's end. It bounds the memory of a batch where
  /// the values of a sample lie together. [Long#MAX_VALUE] where they do not.
  default long sampleSpan() {
    return Long.MAX_VALUE;
  }

  /// Says where the values of consecutive samples lie, for a field that is [FieldSource.InFiles].
  ///
  /// @param sink is told of all values in order, in as few pieces as possible
  void pieces(int field, SampleRun run, PieceSink sink);

  /// Writes the values of consecutive samples, for a field that is [FieldSource.HostWritten]. Several
  /// threads may call it at once.
  ///
  /// @param target where to write: at `offset` in C order, little endian, end to end
  void write(int field, SampleRun run, MemorySegment target, long offset);

  /// Called when one of the files is opened, or opened again. Several threads may call it at once.
  ///
  /// @throws dev.gantry.core.MalformedFileException if it is not the file whose values [#pieces] tells
  ///     of
  default void opened(Location file, Object identity) {}

  /// Called once, when all questions are asked and all values are written.
  @Override
  default void close() {}

  /// Is told where values lie.
  @FunctionalInterface
  interface PieceSink {
    /// @param offset of the first value in bytes from the start of the file
    /// @param samples whose values lie end to end from there, 1 or more
    void piece(Location file, long offset, int samples);
  }
}
