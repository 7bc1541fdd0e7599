// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.formats.internal.examples.CompleteReader;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// The index of a TFRecord file: where each record's data lies, and of features of
/// `tf.train.Example`s where in the file each record's value lies, or for a few integers what they
/// are.
///
/// All checksums of the file are checked when the index is built, and not again when values are
/// read by it: bytes that rot later go unnoticed, as in any file that is read by offset.
///
/// The index of a local file is mapped, not loaded: of one for ten million records, some hundred bytes are on the
/// heap. Its own checksums, and whether all that it says is in the file, are checked when it is
/// opened. Thread-safe, but [#close] only after the last read.
public final class TfRecordIndex implements AutoCloseable {
  /// What the name of an index has behind that of its file.
  public static final String SUFFIX = ".gantry-index";

  private final Location file;
  private final Object identity;
  private final long fileBytes;
  private final Summary summary;
  private final Loaded mapped;
  private final Map<String, MappedColumn> columns;

  /// @param columns by the tensors' names, all checked
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

  /// The index of a file, which lies beside it.
  public static Location indexFile(Location file) {
    return file.sibling(file.fileName() + SUFFIX);
  }

  /// The index of a local file.
  public static Path indexFile(Path file) {
    return indexFile(Location.of(file)).path();
  }

  /// Reads and checks all of a file, and writes its index; an older one is replaced. Nothing is
  /// written where anything fails. Memory outside of the heap is taken for the index, and twice as
  /// much for a moment where it grows.
  ///
  /// @throws dev.gantry.core.MalformedFileException if the framing is broken, with the kinds of
  ///     [dev.gantry.formats.tfrecord.TfRecordReader]; of kind `invalid-proto` if a record is no
  ///     example; of kind `changed-meanwhile` if the file is written at the same time
  /// @throws MisuseException if the file is compressed: there is no random access then. Also if
  ///     there are more features, or longer names, than [Options] takes
  /// @throws dev.gantry.core.TransferException if a file cannot be read or written, or the caller
  ///     cancels
  public static Summary build(Path file, Options options, GantrySession session) {
    return build(Location.of(file), options, session);
  }

  /// As [#build(Path, Options, GantrySession)], of any store that takes files: the index of a remote
  /// file is written to the temporary folder of this machine, and uploaded.
  ///
  /// @throws MisuseException if the store takes no files, before anything is read
  public static Summary build(Location file, Options options, GantrySession session) {
    try (IndexBuilder builder = new IndexBuilder(file, options, session)) {
      return builder.build();
    }
  }

  /// Opens the index of a file, if there is one of the file as it is now.
  ///
  /// @throws dev.gantry.core.MalformedFileException if the index is damaged, or says what cannot be
  ///     so; it names the index, which is to be built again
  /// @throws dev.gantry.core.TransferException if the file is not there, or the index cannot be
  ///     read
  public static Found open(Path file, GantrySession session) {
    return open(Location.of(file), session);
  }

  /// As [#open(Path, GantrySession)], of any store. A remote index is loaded, and takes as much of the
  /// CPU's memory as it has bytes.
  public static Found open(Location file, GantrySession session) {
    return new IndexOpener(file, session, false).open();
  }

  /// As [#open(Location, GantrySession)]; but where a local file has another time than when it was indexed,
  /// as copies have, all of it is read: the index is of use if the records are those that were indexed.
  static Found openByRecords(Location file, GantrySession session) {
    return new IndexOpener(file, session, true).open();
  }

  /// The file that is indexed.
  public Location file() {
    return file;
  }

  /// The size of the file, in bytes.
  public long fileBytes() {
    return fileBytes;
  }

  /// The position from which a reader begins at a record.
  ///
  /// @param record its number
  public TfRecordReader.Position position(long record) {
    long data = MappedColumn.signedLong(column(IndexFormat.RECORD_OFFSET).bytes(), record);
    return new TfRecordReader.Position(data - IndexFormat.HEADER_BYTES, record);
  }

  /// The file as it was when this was opened.
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

  @Override
  public void close() {
    mapped.close();
  }

  /// What [TfRecordIndex#open] finds.
  public sealed interface Found {
    /// An index of the file as it is now; the caller closes it.
    record Usable(TfRecordIndex index) implements Found {}

    /// None, or one of the file as it was, or of a version that is not known here: the file is to be
    /// indexed again, or streamed.
    ///
    /// @param reason in words, with the name of the index
    record Unusable(String reason) implements Found {}
  }

  /// How an index is built.
  ///
  /// @param features names of those to index; empty for all
  /// @param progress hears how many of the file's bytes have been read
  /// @param cancellation ends it early; nothing is written then
  public record Options(
      List<String> features, ProgressListener progress, Cancellation cancellation) {
    /// The most integers of a record's feature that an index holds.
    public static final int MOST_VALUES = 64;

    /// The most features of one file.
    public static final int MOST_FEATURES = 4096;

    /// The longest name of a feature, in bytes of UTF-8.
    public static final int MOST_NAME_BYTES = 4096;

    static final CompleteReader.Limits LIMITS =
        new CompleteReader.Limits(MOST_FEATURES, MOST_NAME_BYTES);

    public Options {
      features = features.stream().distinct().toList();
      MisuseException.requireRange("number of features", features.size(), 0, MOST_FEATURES);
    }

    /// All features; a new cancellation each time.
    public static Options defaults() {
      return new Options(List.of(), (_, _) -> {}, new Cancellation());
    }

    public Options withFeatures(List<String> chosen) {
      return new Options(chosen, progress, cancellation);
    }

    public Options withProgress(ProgressListener chosen) {
      return new Options(features, chosen, cancellation);
    }

    public Options withCancellation(Cancellation chosen) {
      return new Options(features, progress, chosen);
    }
  }

  /// What an index says of a file.
  ///
  /// @param records in the file
  /// @param recordBytes bytes of these, without their framing
  /// @param features in the order in which they were chosen, or in which records have them first
  public record Summary(long records, long recordBytes, List<Feature> features) {
    public Summary {
      features = List.copyOf(features);
    }

    public Optional<Feature> feature(String name) {
      return features.stream().filter(feature -> feature.name().equals(name)).findFirst();
    }
  }

  /// What an index says of a feature over all records of a file.
  ///
  /// @param kind of the first record that has it; empty where none has
  /// @param missing how many records lack it
  /// @param elements how many bytes, floats or integers each record has, where all have as many, each
  ///     in one place
  /// @param obstacle why it cannot be read without being parsed; empty where it can
  public record Feature(
      String name,
      Optional<FeatureSpec.Kind> kind,
      long missing,
      OptionalLong elements,
      Optional<Obstacle> obstacle) {
    /// @param record the first that is not as those before it, or that cannot be read directly;
    ///     from 0
    /// @param reason in words, about "it": the feature
    public record Obstacle(long record, String reason) {
      /// For a message.
      public String describe() {
        return "in record " + record + " " + reason;
      }
    }

    /// Whether each record has as many elements, in one place or in the index.
    public boolean isDirect() {
      return elements.isPresent();
    }

    /// The size of one record's value, where [#isDirect]. What an index has to say is checked for overflow.
    long valueBytes() {
      return elements.orElseThrow() * IndexFormat.elementBytes(kind.orElseThrow());
    }
  }
}
