// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.cli.internal.process.TemporaryFolder;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.formats.Field;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

/// Converts shards to TFRecord and back. No bit changes, however the samples are divided into
/// files, if `--field` names the fields' dtypes and shapes. Fields of TFRecord's own dtypes do
/// not need `--field`.
class RoundTripPropertiesTest {
  private static final List<DType> OWN = List.of(DType.U8, DType.F32, DType.I64);

  /// The dtypes whose fields become one string of bytes in a record.
  private static final List<DType> AS_BYTES =
      List.of(DType.U8, DType.U64, DType.F16, DType.BF16, DType.F64, DType.F8_E4M3, DType.C64);

  @Provide
  Arbitrary<List<Field>> ownFields() {
    return fields(OWN, Arbitraries.longs().between(2, 40).map(TensorShape::of));
  }

  @Provide
  Arbitrary<List<Field>> typedFields() {
    List<DType> dtypes = new ArrayList<>(AS_BYTES);
    dtypes.addAll(OWN);
    Arbitrary<TensorShape> shapes =
        Arbitraries.longs()
            .between(1, 6)
            .list()
            .ofMaxSize(3)
            .map(axes -> TensorShape.of(axes.stream().mapToLong(Long::longValue).toArray()));
    return fields(dtypes, shapes);
  }

  private static Arbitrary<List<Field>> fields(List<DType> dtypes, Arbitrary<TensorShape> shapes) {
    return Combinators.combine(Arbitraries.of(dtypes), shapes)
        .as((dtype, shape) -> new Field("x", dtype, shape))
        .list()
        .ofMinSize(1)
        .ofMaxSize(4)
        .map(RoundTripPropertiesTest::named);
  }

  private static List<Field> named(List<Field> fields) {
    List<Field> named = new ArrayList<>();
    for (Field field : fields) {
      named.add(new Field("field " + named.size(), field.dtype(), field.shape()));
    }
    return named;
  }

  @Property(tries = 25)
  void ownDtypesAreKept(
      @ForAll("ownFields") List<Field> fields,
      @ForAll @IntRange(min = 1, max = 30) int samples,
      @ForAll @IntRange(min = 1, max = 30) int perShard,
      @ForAll @IntRange(min = 0, max = 4) int files,
      @ForAll long seed)
      throws IOException {
    check(fields, samples, perShard, files, seed, List.of());
  }

  @Property(tries = 25)
  void typesThatAreSaidAreKept(
      @ForAll("typedFields") List<Field> fields,
      @ForAll @IntRange(min = 1, max = 10) int samples,
      @ForAll long seed)
      throws IOException {
    List<String> types =
        fields.stream()
            .map(field -> "--field=" + field.name() + "=" + field.dtype() + field.shape())
            .toList();
    check(fields, samples, 4, 0, seed, types);
  }

  /// @param files the number of TFRecord files, for `--shards`; 0 to convert without `--shards`
  private static void check(
      List<Field> fields, int samples, int perShard, int files, long seed, List<String> types)
      throws IOException {
    try (TemporaryFolder folder = TemporaryFolder.create("gantry-test-", null, false)) {
      Path shards = folder.path().resolve("shards");
      TestSamples.writeShards(shards, fields, random(fields, samples, seed), samples, perShard);
      Path records = folder.path().resolve("records");
      if (files == 0) {
        TestSamples.run("convert", shards, records);
      } else {
        assertThat(records.toFile().mkdir()).isTrue();
        TestSamples.run("convert", "--shards", files, shards, records.resolve("train"));
      }
      Path again = folder.path().resolve("again");
      TestSamples.run(
          Stream.concat(
                  Stream.concat(Stream.of("convert"), types.stream()), Stream.of(records, again))
              .toArray());
      assertThat(TestSamples.fieldsOf(again)).isEqualTo(TestSamples.fieldsOf(shards));
    }
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private static Map<String, byte[]> random(List<Field> fields, int samples, long seed) {
    Random random = new Random(seed);
    Map<String, byte[]> values = new HashMap<>();
    for (Field field : fields) {
      byte[] bytes = new byte[(int) field.sampleBytes() * samples];
      random.nextBytes(bytes);
      values.put(field.name(), bytes);
    }
    return values;
  }
}
