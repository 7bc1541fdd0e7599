// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.internal.examples.Schema;
import dev.gantry.formats.internal.images.Crop;
import dev.gantry.formats.internal.images.ImageDecoder;
import dev.gantry.formats.internal.images.Kernel;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.webdataset.SampleReader;
import dev.gantry.formats.internal.webdataset.StoredIndex;
import dev.gantry.formats.internal.webdataset.TarIndex;
import dev.gantry.formats.internal.webdataset.WebDatasetCatalogue;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.CorruptionPolicy;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.webdataset.MemberField;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/// Parsers of files of samples, which are read as a training reads them.
final class Samples {
  private static final GantrySession SESSION = GantrySession.shared();
  private static final int HEADER_BYTES = 12;
  private static final int FOOTER_BYTES = 4;

  /// The largest batches that are read.
  private static final long MOST_BYTES = 16 << 20;

  private Samples() {}

  /// Reads a TFRecord file. As an uncompressed file it must have as many records as another reader
  /// finds.
  static void records(byte[] input) {
    Location file = Location.of(Places.file("r.tfrecord", input));
    TfRecordOptions plain = TfRecordOptions.defaults().withCompression(Compression.NONE);
    long found = 0;
    boolean whole = true;
    try (TfRecordReader reader = TfRecordReader.open(SESSION, file, plain)) {
      while (reader.next()) {
        found++;
      }
    } catch (MalformedFileException _) {
      whole = false;
    }
    Whole expected = wholeRecords(input);
    if (!expected.equals(new Whole(found, whole))) {
      throw new AssertionError(found + " records, where there are " + expected);
    }
    TfRecordOptions skipping =
        TfRecordOptions.defaults().withCorruption(new CorruptionPolicy.Skip(5));
    try (TfRecordReader reader = TfRecordReader.open(SESSION, file, skipping)) {
      while (reader.next()) {
        long _ = reader.record().byteSize();
      }
    }
    examples(file);
  }

  /// The result of the other reader.
  ///
  /// @param records how many records are valid, from the first on
  /// @param isAll whether the file ends behind them
  private record Whole(long records, boolean isAll) {}

  private static Whole wholeRecords(byte[] bytes) {
    ByteBuffer file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    long count = 0;
    int at = 0;
    while (at < bytes.length) {
      int rest = bytes.length - at - HEADER_BYTES - FOOTER_BYTES;
      boolean header =
          rest >= 0
              && masked(bytes, at, 8) == file.getInt(at + 8)
              && file.getLong(at) >= 0
              && file.getLong(at) <= rest;
      int length = header ? (int) file.getLong(at) : 0;
      int data = at + HEADER_BYTES;
      if (!header || masked(bytes, data, length) != file.getInt(data + length)) {
        return new Whole(count, false);
      }
      at = data + length + FOOTER_BYTES;
      count++;
    }
    return new Whole(count, true);
  }

  private static int masked(byte[] bytes, int from, int length) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, from, length);
    return Integer.rotateRight((int) crc.getValue(), 15) + 0xa282ead8;
  }

  /// Corrects the checksums of the records, as far as their lengths lead.
  static byte[] mendedRecords(byte[] bytes) {
    ByteBuffer file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int at = 0;
    while (bytes.length - at >= HEADER_BYTES + FOOTER_BYTES) {
      file.putInt(at + 8, masked(bytes, at, 8));
      long length = file.getLong(at);
      if (length < 0 || length > bytes.length - at - HEADER_BYTES - FOOTER_BYTES) {
        break;
      }
      int data = at + HEADER_BYTES;
      file.putInt(data + (int) length, masked(bytes, data, (int) length));
      at = data + (int) length + FOOTER_BYTES;
    }
    return bytes;
  }

  private static void examples(Location file) {
    List<FeatureSpec> specs =
        Schema.infer(SESSION, List.of(file), TfRecordOptions.defaults(), Schema.USUAL_RECORDS);
    if (specs.isEmpty()) {
      return;
    }
    ExampleParser parser = new ExampleParser(specs);
    List<RawRecord> records = new ArrayList<>();
    try (TfRecordReader reader = TfRecordReader.open(SESSION, file, TfRecordOptions.defaults())) {
      while (records.size() < Schema.USUAL_RECORDS && reader.next()) {
        MemorySegment copy = MemorySegment.ofArray(reader.record().toArray(ValueLayout.JAVA_BYTE));
        records.add(new RawRecord(file, reader.number(), reader.offset(), copy));
      }
    }
    long bytes = parser.batchBytes(records.size());
    if (bytes <= MOST_BYTES) {
      try (Arena arena = Arena.ofConfined()) {
        var _ = parser.parse(records, arena.allocate(Math.max(1, bytes)));
      }
    }
  }

  /// Reads a TFRecord file with its index.
  static void recordIndex(byte[] input) {
    Path file = Places.folder("index", Bundle.files(input)).resolve("r.tfrecord");
    switch (TfRecordIndex.open(Location.of(file), SESSION)) {
      case TfRecordIndex.Found.Usable(TfRecordIndex index) -> {
        try (index) {
          var _ = index.summary();
        }
      }
      case TfRecordIndex.Found.Unusable _ -> {
        // The index has a reason for being unusable.
      }
    }
  }

  /// Reads a WebDataset archive, which may be compressed.
  static void archive(byte[] input) throws IOException {
    Location file = Location.of(Places.file("a.tar", input));
    try (SampleReader reader = SampleReader.open(SESSION, file)) {
      while (reader.next().isPresent()) {
        long _ = reader.tar().read().byteSize();
      }
    }
    TarIndex index = TarIndex.scanAny(SESSION, file);
    List<MemberField> fields = new ArrayList<>();
    List<String> names = new ArrayList<>();
    for (String field : index.fields()) {
      if (!names.contains(field) && field.matches("[a-z]+")) {
        names.add(field);
        fields.add(
            switch (field) {
              case "cls" -> new MemberField.IntegerText(field);
              case "npy" -> new MemberField.Npy(field);
              case "jpg", "png" ->
                  new MemberField.Decoded(
                      field, DType.U8, TensorShape.of(4, 4, 3), new ImageDecoder(picture()));
              default -> new MemberField.Padded(field, 64);
            });
      }
    }
    List<String> all = new ArrayList<>();
    for (int i = 0; i < names.size(); i++) {
      all.add(names.get(i));
    }
    if (fields.isEmpty()) {
      index.close();
      return;
    }
    try (SampleCatalogue catalogue = WebDatasetCatalogue.of(SESSION, List.of(index), fields, all)) {
      read(catalogue);
    }
  }

  /// Reads an archive with its index.
  static void archiveIndex(byte[] input) {
    Path file = Places.folder("archive", Bundle.files(input)).resolve("a.tar");
    switch (StoredIndex.open(SESSION, Location.of(file))) {
      case StoredIndex.Found.Usable(TarIndex index) -> index.close();
      case StoredIndex.Found.Unusable _ -> {
        // The index has a reason for being unusable.
      }
    }
  }

  /// Reads a folder of raw shards.
  static void shards(byte[] input) {
    Path folder = Places.folder("shards", Bundle.files(input));
    ShardSet set = ShardSet.open(SESSION, Location.of(folder));
    if (set.totalBytes() <= MOST_BYTES) {
      set.verify(SESSION);
    }
    try (SampleCatalogue catalogue = set.catalogue()) {
      read(catalogue);
    }
  }

  /// Requests the first samples of each file, as a planner and a writer do.
  private static void read(SampleCatalogue catalogue) {
    for (int file = 0; file < catalogue.fileSamples().size(); file++) {
      int count = (int) Math.min(8, catalogue.fileSamples().get(file));
      if (count == 0) {
        continue;
      }
      SampleRun run = new SampleRun(file, 0, count);
      for (int field = 0; field < catalogue.fields().size(); field++) {
        long bytes = count * catalogue.fields().get(field).sampleBytes();
        switch (catalogue.source(field)) {
          case FieldSource.InFiles _ -> catalogue.pieces(field, run, (_, _, _) -> {});
          case FieldSource.HostWritten _ -> {
            if (bytes <= MOST_BYTES) {
              try (Arena arena = Arena.ofConfined()) {
                catalogue.write(field, run, arena.allocate(Math.max(1, bytes)), 0);
              }
            }
          }
        }
      }
    }
  }

  /// Reads a JPEG or a PNG.
  static void image(byte[] input) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment encoded = arena.allocate(Math.max(1, input.length)).asSlice(0, input.length);
      encoded.copyFrom(MemorySegment.ofArray(input));
      new ImageDecoder(picture()).decode(encoded, arena.allocate(3 * 4 * 4), input.length);
    }
  }

  private static ImageDecoder.Options picture() {
    Crop crop = new Crop.RandomResized(0.1, 1, 0.5, 2);
    return new ImageDecoder.Options(4, 4, crop, 0.5, Kernel.BICUBIC, true, true, false, 1 << 18);
  }
}
