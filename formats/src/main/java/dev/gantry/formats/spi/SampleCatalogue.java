// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.Location;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Describes one dataset of a sample format: its samples, their fields, and for a run of samples where its
/// bytes lie or how they are written.
///
/// A catalogue's answers never change, and it is thread-safe. A dataset has one or more data files,
/// whose samples are numbered from 0. For consecutive samples of a data file, a field's values lie
/// at ascending offsets of one file. Callers ask neither for samples that a data file does not have,
/// nor for values of no bytes.
///
/// A suite, `SampleCatalogueContract`, holds an implementation to these rules.
public interface SampleCatalogue extends AutoCloseable {
  /// The fields of each sample, in the order of a batch's fields.
  List<Field> fields();

  /// How many samples each data file has, 0 or more.
  List<Long> fileSamples();

  /// A text that differs from that of other datasets, and changes when the files change; for example the
  /// names and sizes of the files. It should depend neither on the folder of the files nor on which fields
  /// are chosen.
  String identity();

  /// The source of a field's values.
  ///
  /// @param field an index into [#fields], as everywhere here
  FieldSource source(int field);

  /// The most bytes from the start of a sample's first value to the end of its last one, among the fields
  /// that are [FieldSource.InFiles]. It bounds the memory of a batch if the values of a sample lie
  /// together; [Long#MAX_VALUE] if they do not.
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
  /// @param target gets the values from `offset` on, end to end, in C order, little endian
  void write(int field, SampleRun run, MemorySegment target, long offset);

  /// Writes values that differ among epochs, such as random crops; by default they do not.
  ///
  /// @param epoch the epoch's number, from 0
  default void write(int field, SampleRun run, long epoch, MemorySegment target, long offset) {
    write(field, run, target, offset);
  }

  /// Called when one of the files is opened, or opened again. Several threads may call it at once.
  ///
  /// @throws dev.gantry.core.MalformedFileException if it is not the file whose values [#pieces] tells
  ///     of
  default void opened(Location file, Object identity) {}

  /// Called once, after all other calls have returned.
  @Override
  default void close() {}

  /// Receives the files and offsets of values.
  @FunctionalInterface
  interface PieceSink {
    /// @param offset the first value's offset in bytes from the start of the file
    /// @param samples how many samples' values lie end to end from there, 1 or more
    void piece(Location file, long offset, int samples);
  }
}
