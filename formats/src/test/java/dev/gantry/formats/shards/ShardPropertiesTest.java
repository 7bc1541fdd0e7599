// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
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
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeContainer;
import net.jqwik.api.lifecycle.BeforeTry;

/// All appended samples are read back, at the offsets that the format requires.
class ShardPropertiesTest {
  private static GantrySession session = GantrySession.shared();

  private Path folder = Path.of("");

  @BeforeContainer
  static void open() {
    session = GantrySession.open();
  }

  @AfterContainer
  static void close() {
    session.close();
  }

  @BeforeTry
  void makeFolder() {
    folder = MemoryFolder.create();
  }

  @AfterTry
  void removeFolder() {
    MemoryFolder.delete(folder);
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Provide
  static Arbitrary<List<Field>> fields() {
    Arbitrary<DType> dtypes =
        Arbitraries.of(Stream.of(DType.values()).filter(type -> type.bits() % 8 == 0).toList());
    Arbitrary<TensorShape> shapes =
        Arbitraries.longs()
            .between(0, 12)
            .array(long[].class)
            .ofMaxSize(3)
            .map(TensorShape::of)
            .edgeCases(
                edges -> edges.add(TensorShape.of(), TensorShape.of(4096), TensorShape.of(3, 0)));
    Arbitrary<String> names = Arbitraries.strings().ofMinLength(1).ofMaxLength(5);
    return Combinators.combine(names, dtypes, shapes)
        .as(Field::new)
        .list()
        .ofMinSize(1)
        .ofMaxSize(5)
        .uniqueElements(Field::name);
  }

  @Provide
  static Arbitrary<ShardOptions> options() {
    Arbitrary<ShardOptions> cut =
        Arbitraries.oneOf(
            Arbitraries.integers()
                .between(1, 12)
                .map(n -> ShardOptions.defaults().withSamplesPerShard(n)),
            Arbitraries.longs()
                .between(1, 40_000)
                .map(n -> ShardOptions.defaults().withShardBytes(n)));
    Arbitrary<Integer> blocks = Arbitraries.of(1, 2, 3, 256);
    Arbitrary<Integer> writers = Arbitraries.integers().between(1, 3);
    Arbitrary<WriteOptions> write =
        Combinators.combine(Arbitraries.of(1, 4, 4096), Arbitraries.of(true, false))
            .as((pages, cached) ->
                WriteOptions.defaults().withRequestBytes(pages * 4096L).withPageCache(cached));
    Arbitrary<Map<String, String>> notes =
        Arbitraries.maps(Arbitraries.of("", "a", "é\"\n"), Arbitraries.of("", "b", "\uD83D\uDE00"));
    return Combinators.combine(cut, blocks, writers, write, notes)
        .as((options, pages, count, how, metadata) ->
            options
                .withBlockBytes(pages * 4096L)
                .withWriters(count)
                .withWrite(how)
                .withMetadata(metadata));
  }

  @Property(tries = 150)
  void whatIsAppendedIsReadBackHoweverItComes(
      @ForAll("fields") List<Field> fields,
      @ForAll("options") ShardOptions options,
      @ForAll @IntRange(max = 30) int samples,
      @ForAll Random random) {
    Map<String, byte[]> values = TestShards.values(fields, samples, samples);
    Path appended = folder.resolve("appended");
    long perShard;
    ShardSet written;
    try (ShardWriter writer = ShardWriter.create(session, appended, fields, options)) {
      perShard = writer.samplesPerShard();
      for (int done = 0; done < samples; ) {
        if (random.nextBoolean()) {
          writer.append(TestShards.segments(fields, values, done, 1));
          done++;
        } else {
          int count = random.nextInt(samples - done + 1);
          writer.append(count, TestShards.sources(fields, values, done, count));
          done += count;
        }
      }
      written = writer.finish();
    }
    TestShards.requireWhole(appended, fields, values, samples, "");
    requireCut(written, options, perShard, samples);
    assertThat(ShardSet.open(appended).metadata()).isEqualTo(options.metadata);
    assertThat(ShardSet.open(appended).catalogue().identity())
        .isEqualTo(written.catalogue().identity());

    Path arrays = folder.resolve("arrays");
    ShardWriter.write(
        session, arrays, fields, samples, TestShards.sources(fields, values, 0, samples), options);
    assertThat(contents(arrays)).isEqualTo(contents(appended));
  }

  private static void requireCut(ShardSet set, ShardOptions options, long perShard, int samples) {
    assertThat(set.shards()).hasSize((int) Math.ceilDiv(samples, perShard));
    for (int i = 0; i < set.shards().size(); i++) {
      Shard shard = set.shards().get(i);
      assertThat(shard.samples()).isEqualTo(Math.min(perShard, samples - i * perShard));
      if (options.samplesPerShard == 0 && perShard > 1) {
        assertThat(shard.bytes()).isLessThanOrEqualTo(options.shardBytes);
      }
    }
  }

  private static Map<String, String> contents(Path folder) {
    Map<String, String> contents = new LinkedHashMap<>();
    for (String name : TestShards.names(folder)) {
      contents.put(name, HexFormat.of().formatHex(TestShards.read(folder.resolve(name))));
    }
    return contents;
  }

  @Property(tries = 60)
  void aDamagedByteIsFoundInItsBlock(
      @ForAll("options") ShardOptions options,
      @ForAll @IntRange(min = 1, max = 20) int samples,
      @ForAll Random random)
      throws IOException {
    Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 5, samples);
    ShardSet set =
        ShardWriter.write(
            session,
            folder.resolve("set"),
            TestShards.FIELDS,
            samples,
            TestShards.sources(TestShards.FIELDS, values, 0, samples),
            options);
    Shard shard = set.shards().get(random.nextInt(set.shards().size()));
    byte[] bytes = TestShards.read(shard.file());
    int at = random.nextInt(bytes.length);
    bytes[at] ^= (byte) (1 << random.nextInt(8));
    Files.write(shard.file(), bytes);
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> set.verify(session));
    assertThat(fault)
        .returns("checksum-mismatch", MalformedFileException::kind)
        .returns(Location.of(shard.file()), MalformedFileException::file)
        .returns(at / set.blockBytes() * set.blockBytes(), MalformedFileException::offset);
  }

  /// The estimate lets a writer know early that its index would be too large for readers.
  @Property(tries = 100)
  void anEntryTakesNoMoreThanIsReckoned(
      @ForAll @IntRange(min = 1, max = 30) int fields,
      @ForAll @IntRange(max = 20) int blocks,
      @ForAll @IntRange(min = 1, max = 5) int shards) {
    List<Field> some = new ArrayList<>();
    long[] offsets = new long[fields];
    for (int i = 0; i < fields; i++) {
      some.add(new Field("field" + i, DType.U8, TensorShape.of()));
      offsets[i] = Long.MAX_VALUE;
    }
    List<Shard> entries = new ArrayList<>();
    for (int i = 0; i < shards; i++) {
      Path file = ShardFolder.shard(folder, ShardSet.MAX_SHARDS - 1 - i);
      entries.add(
          new Shard(Location.of(file), Long.MAX_VALUE, Long.MAX_VALUE, offsets, new int[blocks]));
    }
    Path index = ShardFolder.index(folder);
    int empty =
        ShardIndexWriter.bytes(new ShardSet(Location.of(index), 4096, some, Map.of(), List.of()))
            .length;
    int full =
        ShardIndexWriter.bytes(new ShardSet(Location.of(index), 4096, some, Map.of(), entries))
            .length;
    // The total number of samples takes up to 20 digits, but one in the empty index.
    assertThat((long) full)
        .isLessThanOrEqualTo(empty + 20 + shards * NewShardSet.mostEntryBytes(fields, blocks));
  }
}
