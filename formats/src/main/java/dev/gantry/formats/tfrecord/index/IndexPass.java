package dev.gantry.formats.tfrecord.index;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.core.Source;
import dev.gantry.core.internal.commit.Crc32c;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Gathers what an index holds, from a file's records in order. For one thread.
final class IndexPass implements AutoCloseable {
  private final ExampleScanner scanner;
  private final Column offsets = new Column();
  private final SequencedMap<String, FeatureColumns> features = new LinkedHashMap<>();
  private long records;

  /// @param chosen names of features; empty for all
  IndexPass(List<String> chosen) {
    scanner = new ExampleScanner(chosen);
    chosen.forEach(name -> features.put(name, new FeatureColumns(name, 0)));
  }

  /// Adds the reader's record.
  void add(TfRecordReader reader) {
    scan(reader);
    offsets.addLong(reader.offset() + IndexFormat.HEADER_BYTES);
    for (String name : scanner.names()) {
      features
          .computeIfAbsent(name, one -> new FeatureColumns(one, records))
          .add(records, scanner.feature(name));
    }
    records++;
  }

  private void scan(TfRecordReader reader) {
    try {
      scanner.scan(reader.record().asByteBuffer());
    } catch (InvalidProtocolBufferException e) {
      throw new MalformedFileException(
          reader.file(),
          reader.offset(),
          "invalid-proto",
          "record " + reader.number() + ": byte " + scanner.position() + ": " + e.getMessage());
    } catch (ExampleScanner.LimitException e) {
      throw new MisuseException(
          reader.file() + ": record " + reader.number() + ": " + e.getMessage());
    }
  }

  IndexSummary summary(FileStamp stamp) {
    return notes(stamp, Map.of()).summary();
  }

  /// The index as a file, whose bytes stay in memory until this closes.
  NewSafetensors checkpoint(Path index, FileStamp stamp) {
    List<NewTensor> tensors = new ArrayList<>();
    tensors.add(
        new NewTensor(
            IndexFormat.RECORD_OFFSET,
            DType.U64,
            Shape.of(records),
            new Source.HostMemory(offsets.bytes())));
    features.values().forEach(feature -> tensors.addAll(feature.tensors(records)));
    Map<String, Integer> checksums = new HashMap<>();
    for (NewTensor tensor : tensors) {
      if (tensor.source() instanceof Source.HostMemory(var bytes)) {
        checksums.put(tensor.name(), Crc32c.of(bytes));
      }
    }
    return NewSafetensors.file(index, tensors, notes(stamp, checksums).toNotes());
  }

  private IndexNotes notes(FileStamp stamp, Map<String, Integer> checksums) {
    List<IndexedFeature> summaries =
        features.values().stream().map(FeatureColumns::summary).toList();
    return new IndexNotes(stamp, records, summaries, checksums);
  }

  @Override
  public void close() {
    offsets.close();
    features.values().forEach(FeatureColumns::close);
  }
}
