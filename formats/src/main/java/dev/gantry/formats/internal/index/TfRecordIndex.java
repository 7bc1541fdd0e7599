// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.formats.internal.examples.ExampleReader;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// The index of a TFRecord file. It holds where each record's data lies and, for each feature of its
/// `tf.train.Example`s, where each record's value lies in the file, or the values themselves if they are a
/// few integers.
///
/// All checksums of the file are compared when the index is built, and not again when values are read by
/// it: later damage goes unnoticed, as in any file that is read by offset.
///
/// The index of a local file is mapped, not loaded: some hundred bytes are on the heap, even for ten
/// million records. When it is opened, its own checksums are compared, and all offsets are checked against
/// the file's size. Thread-safe, but [#close] must come after the last read.
public final class TfRecordIndex implements AutoCloseable {
  /// The suffix that makes a file's name that of its index.
  public static final String SUFFIX = IndexFile.SUFFIX;

  private final Location file;
  private final Object identity;
  private final long fileBytes;
  private final Summary summary;
  private final Loaded mapped;
  private final Map<String, MappedColumn> columns;

  /// @param columns the checked columns by their tensors' names
  TfRecordIndex(
      Location file,
      Object identity,
      IndexNotes notes,
      Loaded mapped,
      Map<String, MappedColumn> columns) {
    this.file = file;
    this.identity = identity;
    this.fileBytes = notes.stamp().size();
    this.summary = notes.summary();
    this.mapped = mapped;
    this.columns = Map.copyOf(columns);
  }

  /// The location of a file's index, which lies beside the file.
  public static Location indexFile(Location file) {
    return file.sibling(file.fileName() + SUFFIX);
  }

  /// The path of a local file's index.
  public static Path indexFile(Path file) {
    return indexFile(Location.of(file)).path();
  }

  /// Reads and checks a whole file, and writes its index in place of an older one. A failure writes
  /// nothing. It takes native memory of the index's size, and briefly twice as much while it grows.
  ///
  /// @throws dev.gantry.core.MalformedFileException if the framing is broken, with the kinds of
  ///     [dev.gantry.formats.tfrecord.TfRecordReader]; of kind `invalid-proto` if a record is no
  ///     example; of kind `changed-meanwhile` if the file is written at the same time
  /// @throws MisuseException if the file is compressed, which allows no random access, or if it has more
  ///     features or longer names than [Options] allows
  /// @throws dev.gantry.core.TransferException if a file cannot be read or written
  public static Summary build(Path file, Options options, GantrySession session) {
    return build(Location.of(file), options, session);
  }

  /// Builds an index as [#build(Path, Options, GantrySession)] does, for a file of any store that takes
  /// files: a remote file's index is written to this machine's temporary folder, and uploaded.
  ///
  /// @throws MisuseException if the store takes no files, before anything is read
  public static Summary build(Location file, Options options, GantrySession session) {
    try (IndexBuilder builder = new IndexBuilder(file, options, session)) {
      return builder.build();
    }
  }

  /// Opens the index of a file, if there is one that matches the file as it is now.
  ///
  /// @throws dev.gantry.core.MalformedFileException if the index is damaged or contradicts the file; the
  ///     error names the index, which must be built again
  /// @throws dev.gantry.core.TransferException if the file is missing, or the index cannot be read
  public static Found open(Path file, GantrySession session) {
    return open(Location.of(file), session);
  }

  /// Opens an index as [#open(Path, GantrySession)] does, for a file of any store. A remote index is loaded
  /// into the CPU's memory as a whole.
  public static Found open(Location file, GantrySession session) {
    return IndexOpener.open(file, session, false);
  }

  /// Opens an index as [#open(Location, GantrySession)] does. But if a local file's time has changed, as in
  /// a copy, it reads the whole file, and accepts the index if the records are those that were indexed.
  static Found openByRecords(Location file, GantrySession session) {
    return IndexOpener.open(file, session, true);
  }

  /// The file that is indexed.
  public Location file() {
    return file;
  }

  /// The size of the file, in bytes.
  public long fileBytes() {
    return fileBytes;
  }

  /// Returns the position at which a reader starts in order to read a record first.
  ///
  /// @param record the record's number, from 0
  public TfRecordReader.Position position(long record) {
    long data = MappedColumn.signedLong(column(IndexFormat.RECORD_OFFSET).bytes(), record);
    return new TfRecordReader.Position(data - IndexFormat.HEADER_BYTES, record);
  }

  /// The file's identity when this index was opened.
  Object identity() {
    return identity;
  }

  public Summary summary() {
    return summary;
  }

  /// The numbers of a tensor.
  ///
  /// @throws MisuseException if the index has no such tensor
  MappedColumn column(String tensor) {
    MappedColumn column = columns.get(tensor);
    if (column == null) {
      throw new MisuseException("the index of " + file + " has no '" + tensor + "'");
    }
    return column;
  }

  MappedColumn offsets(String feature) {
    return column(IndexFormat.tensor(feature, IndexFormat.OFFSET));
  }

  /// Whether the index has the offset of each record's value of a feature, which [#place] needs.
  boolean hasPlaces(String feature) {
    return columns.containsKey(IndexFormat.tensor(feature, IndexFormat.OFFSET));
  }

  /// Returns where a record's value of a feature lies in the file.
  Extent place(Feature feature, long record) {
    MemorySegment records = column(IndexFormat.RECORD_OFFSET).bytes();
    long at = TfRecordCatalogue.offset(records, offsets(feature.name()).bytes(), record);
    long length =
        feature.isDirect()
            ? feature.valueBytes()
            : MappedColumn.unsignedInt(
                column(IndexFormat.tensor(feature.name(), IndexFormat.LENGTH)).bytes(), record);
    return new Extent(file, at, length);
  }

  @Override
  public void close() {
    mapped.close();
  }

  /// The result of [TfRecordIndex#open].
  public sealed interface Found {
    /// There is an index that matches the file as it is now; the caller closes it.
    record Usable(TfRecordIndex index) implements Found {}

    /// There is no index, or an outdated one, or one of an unknown version: the file must be indexed again,
    /// or streamed.
    ///
    /// @param reason in words, with the name of the index
    record Unusable(String reason) implements Found {}
  }

  /// How an index is built.
  ///
  /// @param features the names of the features to index; empty for all
  /// @param progress called with the number of the file's bytes that were read
  public record Options(List<String> features, ProgressListener progress) {
    /// The most integers of a record's feature that an index holds.
    public static final int MAX_VALUES = 64;

    /// The most features of one file.
    public static final int MAX_FEATURES = 4096;

    /// The longest name of a feature, in bytes of UTF-8.
    public static final int MAX_NAME_BYTES = 4096;

    static final ExampleReader.Limits LIMITS =
        new ExampleReader.Limits(MAX_FEATURES, MAX_NAME_BYTES);

    public Options {
      features = features.stream().distinct().toList();
      MisuseException.requireRange("number of features", features.size(), 0, MAX_FEATURES);
    }

    /// Indexes all features.
    public static Options defaults() {
      return new Options(List.of(), (_, _) -> {});
    }

    public Options withFeatures(List<String> chosen) {
      return new Options(chosen, progress);
    }

    public Options withProgress(ProgressListener chosen) {
      return new Options(features, chosen);
    }
  }

  /// An index's summary of a file.
  ///
  /// @param records how many records the file has
  /// @param recordBytes the size of all records, without their framing
  /// @param features the features in the order in which they were chosen, or in which they first come in
  ///     the records
  public record Summary(long records, long recordBytes, List<Feature> features) {
    public Summary {
      features = List.copyOf(features);
    }

    public Optional<Feature> feature(String name) {
      return features.stream().filter(feature -> feature.name().equals(name)).findFirst();
    }
  }

  /// An index's summary of one feature over all records of a file.
  ///
  /// @param kind the kind in the first record that has the feature; empty if no record has it
  /// @param missing how many records lack the feature
  /// @param elements how many bytes, floats or integers each record has; empty unless all have equally
  ///     many, each in one place
  /// @param obstacle why the feature cannot be read without parsing the records; empty if it can
  public record Feature(
      String name,
      Optional<FeatureSpec.Kind> kind,
      long missing,
      OptionalLong elements,
      Optional<Obstacle> obstacle) {
    /// @param record the number of the first record that differs from those before it or cannot be read
    ///     directly, from 0
    /// @param reason the reason in words, in which "it" is the feature
    public record Obstacle(long record, String reason) {
      /// Describes the obstacle in words, for a message.
      public String describe() {
        return "in record " + record + " " + reason;
      }
    }

    /// Whether all records have equally many elements, each record's in one place or in the index.
    public boolean isDirect() {
      return elements.isPresent();
    }

    /// The size of one record's value, if the feature [#isDirect]; numbers of an index are checked for
    /// overflow.
    long valueBytes() {
      return elements.orElseThrow() * IndexFormat.elementBytes(kind.orElseThrow());
    }
  }
}
