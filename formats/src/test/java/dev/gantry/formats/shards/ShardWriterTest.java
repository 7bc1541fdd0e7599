// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Sets of raw shards that are written: their bytes, the sources of values, and the memory that the writer takes.
@Tag("jdk-files")
class ShardWriterTest extends ShardWriterFixture {
  /// The files must equal the golden files, which a script wrote.
  @Test
  void writesTheFormatToTheByte() {
    ShardOptions options =
        ShardOptions.defaults().withSamplesPerShard(3).withBlockBytes(GoldenShardsTest.BLOCK_BYTES);
    try (ShardWriter writer =
        ShardWriter.create(session, folder(), GoldenShardsTest.FIELDS, options)) {
      for (int sample = 0; sample < 5; sample++) {
        Map<String, MemorySegment> one = new HashMap<>();
        for (int field = 0; field < GoldenShardsTest.FIELDS.size(); field++) {
          one.put(
              GoldenShardsTest.FIELDS.get(field).name(),
              MemorySegment.ofArray(GoldenShardsTest.value(field, sample)));
        }
        writer.append(one);
      }
      writer.finish();
    }
    ShardSet golden = ShardSet.open(GoldenShardsTest.folder());
    assertThat(ShardSet.open(folder()).catalogue().identity())
        .isEqualTo(golden.catalogue().identity());
    for (Shard shard : golden.shards()) {
      assertThat(folder().resolve(shard.name())).hasSameBinaryContentAs(shard.file());
    }
  }

  @Test
  void valuesComeFromArraysArenasFilesAndSlabs() throws IOException {
    Path file = Files.write(parent.resolve("images"), values.get("image"));
    HostSlab slab = HostSlab.allocate(4096);
    try (ShardWriter writer = writer(session, 1);
        Arena arena = Arena.ofConfined()) {
      MemorySegment image = arena.allocate(1500).copyFrom(segment("image").asSlice(0, 1500));
      MemorySegment label =
          MemorySegment.ofArray(new long[1]).copyFrom(segment("label").asSlice(0, 8));
      writer.append(Map.of("image", image, "label", label, "empty", MemorySegment.NULL));
      MemorySegment labels = slab.segment().asSlice(64, 8 * 19L);
      labels.copyFrom(segment("label").asSlice(8));
      writer.append(
          19,
          Map.of(
              "image", new Source.FilePart(new Extent(file, 1500, 19 * 1500)),
              "label", new Region(slab, 64, 8 * 19).source(),
              "empty", new Region(null, 0, 0).source()));
      labels.fill((byte) 0);
      writer.finish();
    } finally {
      slab.release();
    }
    requireWhole(20);
  }

  private MemorySegment segment(String field) {
    return MemorySegment.ofArray(values.get(field));
  }

  @Test
  void theDatasetIsThereOnlyWhenItIsFinished() {
    try (ShardWriter writer = writer(session, 1)) {
      TestShards.append(writer, values, 10);
      assertThat(folder().resolve("shards.json")).doesNotExist();
      ShardSet set = writer.finish();
      assertThat(set.samples()).isEqualTo(10);
      requireWhole(10);
      assertThatThrownBy(writer::finish)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("is finished");
      assertThatThrownBy(() -> TestShards.append(writer, values, 1))
          .isInstanceOf(MisuseException.class);
    }
    requireWhole(10);
  }

  @Test
  void aWriterThatIsClosedWithoutFinishSaysSo() {
    PrintStream before = System.err;
    ByteArrayOutputStream log = new ByteArrayOutputStream();
    System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
    try (ShardWriter writer = writer(session, 1)) {
      TestShards.append(writer, values, 1);
    } finally {
      System.setErr(before);
    }
    assertThat(log.toString(StandardCharsets.UTF_8))
        .contains("WARN")
        .contains(folder() + ": closed without finish()");
  }

  @ParameterizedTest
  @CsvSource({
    "I64, double[]",
    "F64, long[]",
    "I32, float[]",
    "F32, int[]",
    "U8, long[]",
    "BF16, char[]"
  })
  void arraysOfAnotherTypeAreRefused(DType dtype, String array) {
    Map<String, MemorySegment> arrays =
        Map.of(
            "double[]", MemorySegment.ofArray(new double[] {7}),
            "long[]", MemorySegment.ofArray(new long[] {7}),
            "float[]", MemorySegment.ofArray(new float[] {7}),
            "int[]", MemorySegment.ofArray(new int[] {7}),
            "char[]", MemorySegment.ofArray(new char[] {7}));
    MemorySegment value = arrays.get(array);
    List<Field> fields =
        List.of(
            new Field("label", dtype, TensorShape.of(value.byteSize() * Byte.SIZE / dtype.bits())));
    String message = "field 'label' is " + dtype + "; its values cannot come from a " + array;
    try (ShardWriter writer = ShardWriter.create(session, folder(), fields, TestShards.options())) {
      assertThatThrownBy(() -> writer.append(Map.of("label", value)))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(message);
      assertThatThrownBy(() -> writer.append(1, Map.of("label", new Memory.OnHost(value))))
          .hasMessageContaining(message);
      writer.append(
          Map.of("label", MemorySegment.ofArray(new byte[Math.toIntExact(value.byteSize())])));
      writer.finish();
    }
    Map<String, Source> sources = Map.of("label", new Memory.OnHost(value));
    assertThatThrownBy(() ->
            ShardWriter.write(
                session, parent.resolve("x"), fields, 1, sources, TestShards.options()))
        .hasMessageContaining(message);
  }

  @Test
  void arraysOfTheFieldsTypeAreTaken() {
    List<Field> fields = new ArrayList<>();
    Map<String, MemorySegment> sample = new HashMap<>();
    Map<DType, MemorySegment> arrays =
        Map.of(
            DType.F16, MemorySegment.ofArray(new short[] {1}),
            DType.BF16, MemorySegment.ofArray(new short[] {1}),
            DType.U16, MemorySegment.ofArray(new char[] {1}),
            DType.U32, MemorySegment.ofArray(new int[] {1}),
            DType.U64, MemorySegment.ofArray(new long[] {1}),
            DType.F32, MemorySegment.ofArray(new float[] {1}),
            DType.F64, MemorySegment.ofArray(new double[] {1}),
            DType.C64, MemorySegment.ofArray(new float[] {1, 2}));
    arrays.forEach((dtype, array) -> {
      fields.add(new Field(dtype.name(), dtype, TensorShape.of()));
      sample.put(dtype.name(), array);
    });
    try (ShardWriter writer = ShardWriter.create(session, folder(), fields, TestShards.options())) {
      writer.append(sample);
      assertThat(writer.finish().samples()).isEqualTo(1);
    }
  }

  @Test
  void aSetIsNotOverwritten() {
    try (ShardWriter writer = writer(session, 1)) {
      TestShards.append(writer, values, 4);
      writer.finish();
    }
    assertThatThrownBy(() -> writer(session, 1))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("holds samples already");
    Map<String, Source> sources = TestShards.sources(FIELDS, values, 0, 1);
    assertThatThrownBy(
            () -> ShardWriter.write(session, folder(), FIELDS, 1, sources, TestShards.options()))
        .isInstanceOf(MisuseException.class);
    requireWhole(4);
  }

  /// The first shard is renamed only after the second one.
  @Test
  void shardsThatOvertakeEachOtherKeepTheirOrder() {
    CountDownLatch second = new CountDownLatch(1);
    ForwardingFileCalls calls =
        new ForwardingFileCalls(Libc.INSTANCE) {
          @Override
          public int rename(Path from, Path to) {
            if (to.endsWith("shard-00000.bin")) {
              await(second);
            }
            int result = super.rename(from, to);
            if (to.endsWith("shard-00001.bin")) {
              second.countDown();
            }
            return result;
          }
        };
    try (GantrySession gantry = Sessions.over(calls);
        ShardWriter writer = writer(gantry, 2)) {
      TestShards.append(writer, values, SAMPLES);
      writer.finish();
    }
    requireWhole(SAMPLES);
  }

  /// The writers' threads can continue only when all slabs are full.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void memoryIsBounded(int writers) {
    CountDownLatch full = new CountDownLatch(1);
    AtomicLong most = new AtomicLong();
    ForwardingFileCalls calls =
        new ForwardingFileCalls(Libc.INSTANCE) {
          @Override
          public int rename(Path from, Path to) {
            await(full);
            most.accumulateAndGet(LiveResources.snapshot().hostBytes(), Math::max);
            return super.rename(from, to);
          }
        };
    int perShard = 3;
    try (GantrySession gantry = Sessions.over(calls);
        ShardWriter writer = writer(gantry, writers)) {
      for (int i = 0; i < SAMPLES; i++) {
        if (i == (writers + 1) * perShard) {
          full.countDown();
        }
        writer.append(TestShards.segments(FIELDS, values, i, 1));
      }
      writer.finish();
    }
    requireWhole(SAMPLES);
    long shardBytes = ShardLayout.of(FIELDS, perShard).bytes();
    long writeBytes = 2 * TestShards.options().write.requestBytes();
    assertThat(most.get())
        .isGreaterThanOrEqualTo((writers + 1) * shardBytes)
        .isLessThanOrEqualTo((writers + 1) * shardBytes + writers * writeBytes);
  }

  @Test
  void whereAllSlabsAreInUseOneWaits() {
    ShardQueue queue = new ShardQueue(2, 1 << 16);
    List<HostSlab> slabs = List.of(queue.take(), queue.take(), queue.take());
    Thread.currentThread().interrupt();
    assertThatThrownBy(queue::take)
        .isInstanceOf(TransferException.class)
        .hasMessage("write failed: a sample, on an interrupted thread: cancelled");
    assertThat(Thread.interrupted()).isTrue();
    assertThat(slabs).noneMatch(Slab::isClosed);
    queue.abandon();
    assertThat(slabs).allMatch(Slab::isClosed);
  }

  /// Samples that need no cut or gather are written without a copy.
  @Test
  void aFullShardIsWrittenFromItsSlab() {
    AtomicLong bytes = new AtomicLong();
    AtomicLong calls = new AtomicLong();
    ForwardingFileCalls counting =
        new ForwardingFileCalls(Libc.INSTANCE) {
          @Override
          public long pwrite(int fd, MemorySegment source, long length, long offset) {
            bytes.addAndGet(length);
            calls.incrementAndGet();
            return super.pwrite(fd, source, length, offset);
          }
        };
    List<Field> fields = List.of(new Field("image", DType.U8, TensorShape.of(64, 1024)));
    ShardOptions options =
        ShardOptions.defaults()
            .withSamplesPerShard(64)
            .withBlockBytes(64 << 10)
            .withWrite(WriteOptions.defaults().withRequestBytes(1 << 20));
    try (GantrySession gantry = Sessions.over(counting);
        ShardWriter writer = ShardWriter.create(gantry, folder(), fields, options)) {
      Map<String, MemorySegment> one = Map.of("image", MemorySegment.ofArray(new byte[64 << 10]));
      for (int i = 0; i < 64; i++) {
        writer.append(one);
      }
      writer.finish();
    }
    // There is one request for each MiB of the shard, and one for the index.
    assertThat(calls.get()).isEqualTo(5);
    assertThat(bytes.get()).isBetween(4L << 20, (4L << 20) + 8192);
  }

  @Test
  void valuesHaveTheirFieldsSizeAndType() {
    Field pairs = new Field("pairs", DType.I16, TensorShape.of(2));
    Field none = new Field("none", DType.F32, TensorShape.of(0));
    NewShardSet.checkValue(pairs, MemorySegment.ofArray(new short[2]));
    NewShardSet.checkValue(none, MemorySegment.ofArray(new long[0]));
    assertThatThrownBy(() -> NewShardSet.checkValue(pairs, MemorySegment.ofArray(new char[2])))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("its values cannot come from a char[]");
    Source nine = new Memory.OnHost(MemorySegment.ofArray(new byte[9]));
    assertThatThrownBy(() -> NewShardSet.checkValues(pairs, 2, nine))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("9 bytes for 2 samples of 4 bytes each");
    assertThatThrownBy(() -> NewShardSet.checkValues(none, 9, nine))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("9 bytes for 9 samples of 0 bytes each");
  }

  @Test
  void aFieldHasAsManyDimensionsAsAnIndexTakes() {
    long[] sizes = new long[ShardSet.MAX_RANK];
    Arrays.fill(sizes, 1);
    Field most = new Field("most", DType.U8, TensorShape.of(sizes));
    assertThat(NewShardSet.of(Path.of("set"), List.of(most), ShardOptions.defaults()).fields())
        .containsExactly(most);
  }
}
