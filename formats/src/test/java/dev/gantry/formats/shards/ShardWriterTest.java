// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
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
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
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
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class ShardWriterTest {
  private static final int SAMPLES = 20;
  private static final List<Field> FIELDS = TestShards.FIELDS;

  @TempDir Path parent;
  private final GantrySession session = GantrySession.open();
  private final Map<String, byte[]> values = TestShards.values(FIELDS, 1, SAMPLES);

  @AfterEach
  void close() {
    session.close();
  }

  private Path folder() {
    return parent.resolve("set");
  }

  private ShardWriter writer(GantrySession gantry, int writers) {
    return ShardWriter.create(gantry, folder(), FIELDS, TestShards.options().withWriters(writers));
  }

  private void requireWhole(int samples) {
    TestShards.requireWhole(folder(), FIELDS, values, samples, "");
  }

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
  void whatIsNotFinishedIsRemoved() throws IOException {
    ShardWriter closed;
    try (ShardWriter writer = writer(session, 2)) {
      closed = writer;
      TestShards.append(writer, values, SAMPLES);
    }
    assertThatThrownBy(closed::finish)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("is closed");
    assertThat(folder()).doesNotExist();
    // A folder that existed before stays, and so do files that no writer of shards made.
    Files.createDirectory(folder());
    Files.writeString(folder().resolve("shard-1.bin"), "mine");
    try (ShardWriter writer = writer(session, 2)) {
      TestShards.append(writer, values, SAMPLES);
    }
    assertThat(TestShards.names(folder())).containsExactly("shard-1.bin");
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

  @Test
  void whatIsInTheWayIsNotRemoved() throws IOException {
    Files.writeString(folder(), "a file");
    assertThatThrownBy(() -> writer(session, 1)).hasMessageContaining("is there, but no folder");
    Files.delete(folder());
    Files.createDirectories(folder().resolve("shard-00000.bin"));
    assertThatThrownBy(() -> writer(session, 1))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("shard-00000.bin is no unfinished work of a writer's");
  }

  @Test
  void samplesThatDoNotFitAreRefusedAndTheWriterGoesOn() {
    try (ShardWriter writer = writer(session, 1)) {
      Map<String, MemorySegment> good = TestShards.segments(FIELDS, values, 0, 1);
      Map<String, MemorySegment> some = new HashMap<>(good);
      some.remove("label");
      assertThatThrownBy(() -> writer.append(some))
          .isInstanceOf(MisuseException.class)
          .hasMessage("field 'label' has no value");
      some.put("label", MemorySegment.ofArray(new int[1]));
      assertThatThrownBy(() -> writer.append(some))
          .isInstanceOf(MisuseException.class)
          .hasMessage("field 'label': 4 bytes for 1 samples of 8 bytes each");
      some.put("label", good.get("label"));
      some.put("lable", good.get("label"));
      assertThatThrownBy(() -> writer.append(some))
          .isInstanceOf(MisuseException.class)
          .hasMessage("no field 'lable', but [image, empty, label]");
      assertThatThrownBy(() -> writer.append(2, TestShards.sources(FIELDS, values, 0, 3)))
          .isInstanceOf(MisuseException.class)
          .hasMessage("field 'image': 4500 bytes for 2 samples of 1500 bytes each");
      assertThatThrownBy(() -> writer.append(-1, TestShards.sources(FIELDS, values, 0, 0)))
          .isInstanceOf(MisuseException.class);
      writer.append(good);
      assertThat(writer.finish().samples()).isEqualTo(1);
    }
    requireWhole(1);
  }

  @Test
  void whatNoReaderWouldTakeIsNotBegun() {
    Field field = new Field("a", DType.U8, TensorShape.of());
    requireRefused(List.of(), ShardOptions.defaults(), "samples need 1 to 1000 fields");
    requireRefused(List.of(field, field), ShardOptions.defaults(), "two fields of the name 'a'");
    requireRefused(
        List.of(new Field("\uD800", DType.U8, TensorShape.of())),
        ShardOptions.defaults(),
        "half of a surrogate pair");
    requireRefused(
        List.of(new Field("a", DType.U8, TensorShape.of(new long[65]))),
        ShardOptions.defaults(),
        "more than 64 dimensions");
    requireRefused(
        List.of(new Field("a", DType.F64, TensorShape.of(1L << 40))),
        ShardOptions.defaults().withSamplesPerShard(1 << 30),
        "more than a file can hold");
    requireRefused(
        List.of(new Field("a", DType.F64, TensorShape.of(1L << 31))),
        ShardOptions.defaults().withBlockBytes(4096),
        "choose larger blocks");
    assertThat(folder()).doesNotExist();
  }

  private void requireRefused(List<Field> fields, ShardOptions options, String why) {
    assertThatThrownBy(() -> ShardWriter.create(session, folder(), fields, options))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(why);
  }

  @Test
  void optionsThatCannotBe() {
    ShardOptions options = ShardOptions.defaults();
    assertThatThrownBy(() -> options.withSamplesPerShard(-1)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withSamplesPerShard(1L << 31))
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withShardBytes(0)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withBlockBytes(0)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withBlockBytes(4097)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withBlockBytes((1L << 30) + 4096))
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withWriters(0)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withWriters(65)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> options.withMetadata(Map.of("\uD800", "")))
        .isInstanceOf(MisuseException.class);
    assertThat(options.withWrite(WriteOptions.defaults().withChecksums(false)).write.checksums())
        .isTrue();
  }

  @Test
  void moreShardsThanAnIndexHoldsAreRefusedInTime() {
    List<Field> fields = new ArrayList<>();
    Map<String, Source> none = new HashMap<>();
    for (int i = 0; i < ShardSet.MAX_FIELDS; i++) {
      fields.add(new Field("f" + i, DType.U8, TensorShape.of(0)));
      none.put("f" + i, new Memory.OnHost(MemorySegment.NULL));
    }
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(1);
    long most = (ShardSet.MAX_ENTRIES - 1000) / 1001;
    try (ShardWriter writer = ShardWriter.create(session, folder(), fields, options)) {
      assertThatThrownBy(() -> writer.append(most + 1, none))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("no room for more than " + most + " shards");
      assertThatThrownBy(() -> writer.append(Long.MAX_VALUE, none))
          .isInstanceOf(MisuseException.class);
      writer.append(1, none);
      assertThatThrownBy(() -> writer.append(most, none)).isInstanceOf(MisuseException.class);
    }
    assertThatThrownBy(() -> ShardWriter.write(session, folder(), fields, most + 1, none, options))
        .isInstanceOf(MisuseException.class);
    assertThat(folder()).doesNotExist();
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
        .extracting(e -> ((TransferException) e).failure())
        .isEqualTo(new Failure.Cancelled());
    assertThat(Thread.interrupted()).isTrue();
    assertThat(slabs).noneMatch(Slab::isClosed);
    queue.abandon();
    assertThat(slabs).allMatch(Slab::isClosed);
  }

  /// The first shard fails while the second one is being filled.
  @Test
  void aFailureBehindTheCallersBackIsToldOnce() {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    calls.at(Function.RENAME, 1, new Fails(Errno.ENOSPC));
    try (GantrySession gantry = Sessions.over(calls);
        ShardWriter writer = writer(gantry, 1)) {
      // One thread has two slabs, so the third shard waits for the first one.
      assertThatThrownBy(() -> TestShards.append(writer, values, SAMPLES))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("rename")
          .hasMessageContaining("ENOSPC");
      assertThatThrownBy(() -> TestShards.append(writer, values, 1))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("has failed");
      assertThatThrownBy(writer::finish)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("has failed");
    }
    assertThat(folder()).doesNotExist();
  }

  @Test
  void aFailureOfTheLastShardIsToldByFinish() {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    calls.at(Function.RENAME, 2, new Fails(Errno.EIO));
    try (GantrySession gantry = Sessions.over(calls);
        ShardWriter writer = writer(gantry, 1)) {
      TestShards.append(writer, values, 4);
      assertThatThrownBy(writer::finish).hasMessageContaining("EIO");
    }
    assertThat(folder()).doesNotExist();
  }

  @Test
  void anInterruptionEndsTheWriterAndLeavesNothing() {
    try (ShardWriter writer = writer(session, 1)) {
      TestShards.append(writer, values, 5);
      Thread.currentThread().interrupt();
      assertThatThrownBy(writer::finish).isInstanceOf(TransferException.class);
      assertThat(Thread.interrupted()).isTrue();
    }
    assertThat(folder()).doesNotExist();
  }

  @Test
  void aCancellationEndsTheWriter() {
    WriteOptions write = WriteOptions.defaults();
    ShardOptions options = TestShards.options().withWrite(write);
    try (ShardWriter writer = ShardWriter.create(session, folder(), FIELDS, options)) {
      TestShards.append(writer, values, 2);
      write.cancellation().cancel();
      assertThatThrownBy(writer::finish)
          .isInstanceOf(TransferException.class)
          .extracting(e -> ((TransferException) e).failure())
          .isEqualTo(new Failure.Cancelled());
    }
    assertThat(folder()).doesNotExist();
  }

  /// A source fails after an append has taken some of its samples.
  @Test
  void aFailureOfASourceEndsTheWriter() throws IOException {
    Path file = Files.write(parent.resolve("images"), new byte[4 * 1500 + 7]);
    try (ShardWriter writer = writer(session, 1)) {
      Map<String, Source> sources = TestShards.sources(FIELDS, values, 0, 5);
      sources.put("image", new Source.FilePart(new Extent(file, 0, 5 * 1500)));
      assertThatThrownBy(() -> writer.append(5, sources))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("images");
      assertThatThrownBy(writer::finish).isInstanceOf(MisuseException.class);
    }
    assertThat(folder()).doesNotExist();
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
}
