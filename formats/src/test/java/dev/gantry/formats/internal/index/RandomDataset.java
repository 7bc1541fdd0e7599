// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;

/// Indexed files with some features of fixed length, which a seed determines, and their values as
/// the sequential reader decodes them.
final class RandomDataset {
  private static final List<DType> OF_BYTES =
      List.of(DType.U8, DType.I8, DType.BOOL, DType.F16, DType.BF16, DType.I32, DType.F64);
  private static final List<FeatureSpec.Kind> KINDS = List.of(FeatureSpec.Kind.values());
  private static final int MAX_RECORDS = 40;

  private final Random random;
  private final boolean even;
  private final List<FeatureSpec.FixedLength> features = new ArrayList<>();
  private final List<Path> files = new ArrayList<>();

  /// @param even whether all records have one length, so that their values have a fixed pitch
  RandomDataset(GantrySession session, Path folder, long seed, boolean even) {
    this.random = new Random(seed);
    this.even = even;
    for (int i = random.nextInt(1, 5); i > 0; i--) {
      features.add(feature("feature " + i));
    }
    for (int i = random.nextInt(1, 4); i > 0; i--) {
      files.add(file(session, folder.resolve("part-" + i)));
    }
    // A dataset needs at least one record.
    files.add(write(session, folder.resolve("last"), List.of(example(), example())));
  }

  private FeatureSpec.FixedLength feature(String name) {
    FeatureSpec.Kind kind = KINDS.get(random.nextInt(KINDS.size()));
    DType dtype =
        switch (kind) {
          case BYTES -> OF_BYTES.get(random.nextInt(OF_BYTES.size()));
          case FLOAT -> DType.F32;
          case INT64 -> DType.I64;
        };
    int most = kind == FeatureSpec.Kind.INT64 ? TfRecordIndex.Options.MAX_VALUES : 3000;
    int elements = random.nextInt(3) == 0 ? 1 : random.nextInt(1, most + 1);
    TensorShape shape =
        switch (random.nextInt(3)) {
          case 0 -> TensorShape.of(elements);
          case 1 -> TensorShape.of(1, elements);
          default ->
              elements % 2 == 0 ? TensorShape.of(2, elements / 2, 1) : TensorShape.of(elements, 1);
        };
    return new FeatureSpec.FixedLength(name, kind, dtype, shape, Optional.empty());
  }

  private Path file(GantrySession session, Path file) {
    List<byte[]> records = new ArrayList<>();
    for (int i = random.nextInt(MAX_RECORDS + 1); i > 0; i--) {
      records.add(example());
    }
    return write(session, file, records);
  }

  private static Path write(GantrySession session, Path file, List<byte[]> records) {
    TestExamples.write(session, file, records);
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    return file;
  }

  /// Returns an example, some of whose features are not in the dataset.
  private byte[] example() {
    ExampleBuilder example = ExampleBuilder.inOrderOfInsertion();
    List<FeatureSpec.FixedLength> order = new ArrayList<>(features);
    if (!even) {
      Collections.shuffle(order, random);
      example.bytes("noise", new byte[random.nextInt(20)]);
    }
    for (FeatureSpec.FixedLength feature : order) {
      put(example, feature);
    }
    if (!even) {
      example.bytes("more noise", new byte[random.nextInt(3) == 0 ? 50_000 : 7]);
    }
    return example.toBytes();
  }

  private void put(ExampleBuilder example, FeatureSpec.FixedLength feature) {
    int elements = (int) feature.shape().elements().orElseThrow();
    switch (feature.kind()) {
      case BYTES -> {
        byte[] bytes = new byte[elements * feature.dtype().bits() / Byte.SIZE];
        random.nextBytes(bytes);
        example.bytes(feature.name(), bytes);
      }
      case FLOAT -> {
        float[] floats = new float[elements];
        for (int i = 0; i < elements; i++) {
          floats[i] = random.nextFloat();
        }
        example.floats(feature.name(), floats);
      }
      case INT64 -> {
        long[] integers = new long[elements];
        for (int i = 0; i < elements; i++) {
          // If `even`, each number takes one byte as a varint; otherwise up to ten.
          integers[i] = even ? random.nextInt(128) : random.nextLong() >> random.nextInt(64);
        }
        example.int64s(feature.name(), integers);
      }
    }
  }

  List<Path> files() {
    return List.copyOf(files);
  }

  TfRecordCatalogue open(GantrySession session) {
    List<TfRecordField> fields =
        features.stream()
            .map(feature -> TfRecordField.of(feature.name(), feature.dtype(), feature.shape()))
            .toList();
    return TfRecordCatalogue.open(files.stream().map(Location::of).toList(), fields, session);
  }

  /// Returns the bytes that the sequential reader decodes, by file, record and feature.
  List<List<List<byte[]>>> decoded(GantrySession session) {
    ExampleParser parser = new ExampleParser(List.copyOf(features));
    List<List<List<byte[]>>> decoded = new ArrayList<>();
    for (Path file : files) {
      List<List<byte[]>> records = new ArrayList<>();
      try (TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults())) {
        while (reader.next()) {
          RawRecord record = new RawRecord(file, reader.number(), reader.offset(), reader.record());
          records.add(decoded(parser, record));
        }
      }
      decoded.add(records);
    }
    return decoded;
  }

  private static List<byte[]> decoded(ExampleParser parser, RawRecord record) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment batch = arena.allocate(parser.batchBytes(1));
      List<byte[]> values = new ArrayList<>();
      List<FieldView> views = parser.parse(List.of(record), batch);
      for (int i = 0; i < views.size(); i++) {
        long bytes = parser.fields().get(i).sampleBytes();
        values.add(batch.asSlice(views.get(i).offset(), bytes).toArray(ValueLayout.JAVA_BYTE));
      }
      assertThat(values).hasSize(parser.specs().size());
      return values;
    }
  }
}
