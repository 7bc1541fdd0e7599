// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.ExampleReader;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.zip.CRC32C;

/// Builds an index: reads the file once from beginning to end, and writes the index. May be used once.
final class IndexBuilder implements AutoCloseable {
  /// The bytes between two reports of progress: about ten reports a second if the file is in the page
  /// cache.
  private static final long REPORT_BYTES = 64L << 20;

  /// The options by which files are read for an index.
  static final TfRecordOptions ALL =
      TfRecordOptions.defaults().withMostRecordBytes(TfRecordOptions.MAX_RECORD_BYTES);

  private final Location file;
  private final TfRecordIndex.Options options;
  private final GantrySession session;
  private final IndexFile index;
  private final FileStamp stamp;
  private final ExampleReader reader;
  private final Column offsets = new Column();
  private final List<FeatureColumns> features = new ArrayList<>();
  private final CRC32C recordsSum = new CRC32C();
  private long records;

  IndexBuilder(Location file, TfRecordIndex.Options options, GantrySession session) {
    this.file = file;
    this.options = options;
    this.session = session;
    // If the store cannot be written, this fails before the file is read.
    index = IndexFile.of(file, session);
    index.requireWritable();
    stamp = FileStamp.of(file, session);
    reader = ExampleReader.of(options.features(), TfRecordIndex.Options.LIMITS);
    options.features().forEach(name -> features.add(new FeatureColumns(name, 0)));
  }

  TfRecordIndex.Summary build() {
    read();
    index.requireUnchanged(stamp);
    List<NewTensor> tensors = tensors();
    index.write(tensors, notes(IndexFile.checksums(tensors)).toNotes());
    return notes(Map.of()).summary();
  }

  private void read() {
    try (TfRecordReader source = TfRecordReader.open(session, file, ALL)) {
      if (source.compression() != Compression.NONE) {
        throw new MisuseException(
            file
                + " is compressed ("
                + source.compression()
                + "): its records cannot be reached by offset, so it has no index; stream it, or"
                + " write it without compression");
      }
      long report = REPORT_BYTES;
      while (source.next()) {
        add(source);
        if (source.offset() >= report) {
          options.progress().onProgress(source.offset(), stamp.size());
          report = source.offset() + REPORT_BYTES;
        }
      }
      options.progress().onProgress(stamp.size(), stamp.size());
    }
  }

  private void add(TfRecordReader source) {
    reader.read(new RawRecord(file, source.number(), source.offset(), source.record()));
    recordsSum.update(source.record().asByteBuffer());
    offsets.addLong(source.offset() + IndexFormat.HEADER_BYTES);
    for (int i = 0; i < reader.size(); i++) {
      if (i == features.size()) {
        features.add(new FeatureColumns(reader.name(i), records));
      }
      features.get(i).add(records, reader.value(i));
    }
    records++;
  }

  /// The tensors of the index, whose bytes stay in memory until this closes.
  private List<NewTensor> tensors() {
    List<NewTensor> tensors = new ArrayList<>();
    tensors.add(
        new NewTensor(
            IndexFormat.RECORD_OFFSET,
            DType.U64,
            TensorShape.of(records),
            new Memory.OnHost(offsets.bytes())));
    features.forEach(feature -> tensors.addAll(feature.tensors(records)));
    return tensors;
  }

  private IndexNotes notes(Map<String, Integer> checksums) {
    List<TfRecordIndex.Feature> summaries = features.stream().map(FeatureColumns::summary).toList();
    return new IndexNotes(
        stamp, records, OptionalInt.of((int) recordsSum.getValue()), summaries, checksums);
  }

  @Override
  public void close() {
    offsets.close();
    Cleanup.forEach(features, FeatureColumns::close);
  }
}
