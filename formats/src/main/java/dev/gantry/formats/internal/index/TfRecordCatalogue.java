// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.internal.files.KnownFiles;
import dev.gantry.formats.internal.files.ValueFiles;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Unusable;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.spi.FieldDecoder;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Serves TFRecord files as samples by their indexes; each record is one sample. Bytes and floats
/// are read from the data files as they are; integers are taken from the index; the CPU decodes
/// fields with a decoder, such as pictures.
///
/// The records' checksums were compared when the files were indexed, and are not compared again. The files
/// must not change while they are read: a file that has changed when it is opened again is an error.
/// Thread-safe.
public final class TfRecordCatalogue implements SampleCatalogue {
  private final List<TfRecordIndex> indexes;
  private final List<StoredField> fields;
  private final long sampleSpan;
  private final KnownFiles files =
      new KnownFiles("its index is of the other; rebuild the index: ./gantry index FILE");

  private final ValueFiles values;

  private TfRecordCatalogue(
      GantrySession session, List<TfRecordIndex> indexes, List<StoredField> fields) {
    this.indexes = List.copyOf(indexes);
    this.fields = List.copyOf(fields);
    this.sampleSpan = sampleSpan(indexes, fields);
    this.values =
        new ValueFiles(session, indexes.stream().map(TfRecordIndex::file).toList(), files);
    indexes.forEach(index -> files.expect(index.file(), index.identity()));
  }

  /// Opens the indexes of data files; the data files do not stay open.
  ///
  /// @param files the data files, in order
  /// @param fields the fields in order; empty for all features of the first file with records, as they are
  ///     stored
  /// @throws MisuseException if a file has no index or an outdated one, if a feature is not the same in all
  ///     records or not as wanted (the message says which, and what to do instead), or if there are no
  ///     records
  /// @throws dev.gantry.core.MalformedFileException if an index is damaged
  /// @throws dev.gantry.core.TransferException if a file is missing or cannot be read
  public static TfRecordCatalogue open(
      List<Location> files, List<TfRecordField> fields, GantrySession session) {
    List<TfRecordIndex> indexes = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          for (Location file : files) {
            indexes.add(index(file, session));
          }
          return new TfRecordCatalogue(session, indexes, resolve(fields, indexes));
        },
        () -> Cleanup.forEach(indexes, TfRecordIndex::close));
  }

  private static TfRecordIndex index(Location file, GantrySession session) {
    return switch (TfRecordIndex.openByRecords(file, session)) {
      case Usable(TfRecordIndex index) -> index;
      case Unusable(String reason) ->
          throw new MisuseException(reason + "; index the file, or stream it");
    };
  }

  private static List<StoredField> resolve(
      List<TfRecordField> wanted, List<TfRecordIndex> indexes) {
    List<TfRecordIndex> filled =
        indexes.stream().filter(index -> index.summary().records() > 0).toList();
    if (filled.isEmpty()) {
      throw new MisuseException("no records in " + indexes.size() + " TFRecord files");
    }
    List<TfRecordField> chosen =
        wanted.isEmpty()
            ? filled.getFirst().summary().features().stream()
                .map(feature -> TfRecordField.of(feature.name()))
                .toList()
            : wanted;
    Set<String> names = new HashSet<>();
    List<StoredField> fields = new ArrayList<>();
    for (TfRecordField field : chosen) {
      if (!names.add(field.feature())) {
        throw new MisuseException("feature '" + field.feature() + "' is chosen twice");
      }
      fields.add(new FieldResolver(field, filled).resolve());
    }
    return fields;
  }

  @Override
  public List<Field> fields() {
    return fields.stream().map(StoredField::field).toList();
  }

  @Override
  public List<Long> fileSamples() {
    return indexes.stream().map(index -> index.summary().records()).toList();
  }

  /// Identifies the dataset by its files' names, sizes and numbers of records.
  @Override
  public String identity() {
    StringBuilder identity = new StringBuilder("tfrecord");
    for (TfRecordIndex index : indexes) {
      // The slash separates entries, since no file's name has one.
      identity.append('/').append(index.file().fileName());
      identity.append('/').append(index.fileBytes());
      identity.append('/').append(index.summary().records());
    }
    return identity.toString();
  }

  @Override
  public FieldSource source(int field) {
    return fields.get(field).source();
  }

  @Override
  public long sampleSpan() {
    return sampleSpan;
  }

  @Override
  public void pieces(int field, SampleRun run, PieceSink sink) {
    TfRecordIndex index = indexes.get(run.file());
    MemorySegment records = index.column(IndexFormat.RECORD_OFFSET).bytes();
    MemorySegment offsets = index.offsets(fields.get(field).field().name()).bytes();
    Location file = index.file();
    for (long record = run.first(); record < run.first() + run.count(); record++) {
      sink.piece(file, offset(records, offsets, record), 1);
    }
  }

  @Override
  public void opened(Location file, Object identity) {
    files.check(file, identity);
  }

  /// The most bytes of any record from its first chosen value to its last, among fields that are read from
  /// the files; 0 if there are no such fields.
  static long sampleSpan(List<TfRecordIndex> indexes, List<StoredField> fields) {
    List<StoredField> filed =
        fields.stream()
            .filter(field -> field.source() instanceof FieldSource.InFiles)
            .filter(field -> field.field().sampleBytes() > 0)
            .toList();
    long most = 0;
    for (TfRecordIndex index : indexes) {
      if (!filed.isEmpty() && index.summary().records() > 0) {
        most = Math.max(most, mostSpan(index, filed));
      }
    }
    return most;
  }

  private static long mostSpan(TfRecordIndex index, List<StoredField> filed) {
    MemorySegment[] offsets =
        filed.stream()
            .map(field -> index.offsets(field.field().name()).bytes())
            .toArray(MemorySegment[]::new);
    long[] lengths = filed.stream().mapToLong(field -> field.field().sampleBytes()).toArray();
    long most = 0;
    for (long record = 0; record < index.summary().records(); record++) {
      long first = Long.MAX_VALUE;
      long end = 0;
      for (int i = 0; i < offsets.length; i++) {
        long start = MappedColumn.unsignedInt(offsets[i], record);
        first = Math.min(first, start);
        end = Math.max(end, start + lengths[i]);
      }
      most = Math.max(most, end - first);
    }
    return most;
  }

  /// The offset of a value in its file.
  static long offset(MemorySegment records, MemorySegment offsets, long record) {
    return MappedColumn.signedLong(records, record) + MappedColumn.unsignedInt(offsets, record);
  }

  @Override
  public void write(int field, SampleRun run, MemorySegment target, long offset) {
    write(field, run, 0, target, offset);
  }

  @Override
  public void write(int field, SampleRun run, long epoch, MemorySegment target, long offset) {
    StoredField stored = fields.get(field);
    if (stored.decoder().isPresent()) {
      decode(stored, stored.decoder().get(), run, epoch, target, offset);
    } else {
      writeIntegers(stored, run, target, offset);
    }
  }

  private void decode(
      StoredField stored,
      FieldDecoder decoder,
      SampleRun run,
      long epoch,
      MemorySegment target,
      long offset) {
    TfRecordIndex index = indexes.get(run.file());
    String name = stored.field().name();
    TfRecordIndex.Feature feature = index.summary().feature(name).orElseThrow();
    List<Extent> places = new ArrayList<>();
    for (int i = 0; i < run.count(); i++) {
      places.add(index.place(feature, run.first() + i));
    }
    long bytes = stored.field().sampleBytes();
    values.read(
        run.file(),
        places,
        (i, value) -> {
          TfRecordReader.Position record = index.position(run.first() + i);
          RawRecord where =
              new RawRecord(index.file(), record.number(), record.offset(), MemorySegment.NULL);
          where.decode(name, decoder, epoch, value, target.asSlice(offset + i * bytes, bytes));
        });
  }

  private void writeIntegers(StoredField stored, SampleRun run, MemorySegment target, long offset) {
    String column = IndexFormat.tensor(stored.field().name(), IndexFormat.VALUES);
    MemorySegment integers = indexes.get(run.file()).column(column).bytes();
    long first = run.first() * stored.elements();
    long count = run.count() * stored.elements();
    int bytes = stored.field().dtype().alignmentBytes();
    if (bytes == Long.BYTES) {
      MemorySegment.copy(integers, first * Long.BYTES, target, offset, count * Long.BYTES);
      return;
    }
    for (long i = 0; i < count; i++) {
      // The low bytes of each little-endian integer suffice, since the dtype has room for its
      // value.
      MemorySegment.copy(integers, (first + i) * Long.BYTES, target, offset + i * bytes, bytes);
    }
  }

  @Override
  public void close() {
    try (values) {
      Cleanup.forEach(indexes, TfRecordIndex::close);
    }
  }

  /// A field and the feature of its name.
  ///
  /// @param elements how many elements each record has
  /// @param decoder makes the value of the record's bytes; empty for values as they are stored
  record StoredField(
      Field field,
      FeatureSpec.Kind kind,
      long elements,
      FieldSource source,
      Optional<FieldDecoder> decoder) {}
}
