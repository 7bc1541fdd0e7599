// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

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
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;

/// Samples and options that a writer refuses, and writers that fail, are interrupted or are not finished.
class ShardWriterFaultsTest extends ShardWriterFixture {
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
  void whatIsInTheWayIsNotRemoved() throws IOException {
    Files.writeString(folder(), "a file");
    assertThatThrownBy(() -> writer(session, 1)).hasMessageContaining("exists and is not a folder");
    Files.delete(folder());
    Files.createDirectories(folder().resolve("shard-00000.bin"));
    assertThatThrownBy(() -> writer(session, 1))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("shard-00000.bin is not unfinished work of a writer");
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
          .hasMessage("there is no field 'lable'; the fields are [image, empty, label]");
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
    requireRefused(
        Collections.singletonList(null),
        ShardOptions.defaults(),
        "a field must be given (was null)");
    requireRefused(List.of(field, field), ShardOptions.defaults(), "two fields have the name 'a'");
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
  void notesWithoutAnOrderAreOrderedByTheirKeys() {
    SequencedMap<String, String> ordered = new LinkedHashMap<>();
    for (int i = 9; i > 0; i--) {
      ordered.put("key" + i, "");
    }
    ShardOptions options = ShardOptions.defaults();
    assertThat(options.withMetadata(ordered).metadata.keySet())
        .containsExactlyElementsOf(ordered.keySet());
    assertThat(options.withMetadata(Map.copyOf(ordered)).metadata.keySet())
        .containsExactlyElementsOf(ordered.reversed().keySet());
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
}
