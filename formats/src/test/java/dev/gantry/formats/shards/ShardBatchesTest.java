// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Batches of shards take as few reads and copies as their samples allow.
@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class ShardBatchesTest {
  private static final int PER_SHARD = 96;
  private static final int SAMPLES = 2 * PER_SHARD;

  @TempDir Path folder;
  private final Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 4, SAMPLES);

  @BeforeEach
  void write() {
    try (GantrySession session = GantrySession.open()) {
      ShardWriter.write(
          session,
          folder.resolve("set"),
          TestShards.FIELDS,
          SAMPLES,
          TestShards.sources(TestShards.FIELDS, values, 0, SAMPLES),
          TestShards.options().withSamplesPerShard(PER_SHARD));
    }
  }

  private List<BatchPlan<BatchView>> epoch(Batches batches) {
    List<BatchPlan<BatchView>> epoch = new ArrayList<>();
    try (BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      for (Optional<BatchPlan<BatchView>> next = source.next();
          next.isPresent();
          next = source.next()) {
        epoch.add(next.get());
      }
    }
    return epoch;
  }

  /// Fills a slot with the plan's reads, and returns its bytes. The plan must have no host writes
  /// or copies.
  private static byte[] read(BatchPlan<BatchView> plan, long slotBytes) {
    byte[] slot = new byte[Math.toIntExact(slotBytes)];
    for (Read read : plan.reads()) {
      byte[] file = TestShards.read(read.file().path());
      int length = (int) Math.min(read.length(), file.length - read.fileOffset());
      System.arraycopy(file, (int) read.fileOffset(), slot, (int) read.slabOffset(), length);
    }
    return slot;
  }

  @Test
  void aRunOfSamplesIsOneAlignedReadAFieldAndStaysWhereItIsRead() {
    List<String> names = List.of("label", "image");
    int batchSize = 32;
    try (Batches batches =
        EpochBatches.of(
            ShardSet.open(folder.resolve("set")).catalogue(names), OrderOptions.of(batchSize))) {
      List<BatchPlan<BatchView>> epoch = epoch(batches);
      assertThat(epoch).hasSize(SAMPLES / batchSize);
      for (int i = 0; i < epoch.size(); i++) {
        BatchPlan<BatchView> plan = epoch.get(i);
        assertThat(plan.reads()).hasSizeLessThanOrEqualTo(2);
        assertThat(plan.copies()).isEmpty();
        assertThat(plan.hostWrites().bytes()).isZero();
        assertThat(plan.reads())
            .allMatch(read -> read.fileOffset() % 4096 == 0 && read.slabOffset() % 4096 == 0);
        byte[] slot = read(plan, batches.slotBytes());
        for (int field = 0; field < names.size(); field++) {
          requireValues(plan.label().fields().get(field), slot, i * batchSize, batchSize);
        }
      }
    }
  }

  private void epochThroughARing(GantrySession session, Batches batches) {
    RingOptions options =
        new RingOptions(
            Device.HOST,
            2,
            batches.slotBytes(),
            batches.hostBytes(),
            TransferOptions.defaults().withLimits(EpochBatches.LIMITS),
            false);
    try (PrefetchRing<BatchView> ring =
        session.ring(options, new EpochChain(batches, batches.start(), 0))) {
      for (Optional<RingBatch<BatchView>> next = ring.next();
          next.isPresent();
          next = ring.next()) {
        next.get().close();
      }
    }
  }

  /// The new shard's bytes would get the labels of the old one.
  @Test
  void aShardThatIsReplacedOrModifiedBetweenEpochsIsAnError() throws IOException {
    Path shard = folder.resolve("set/shard-00001.bin");
    FileTime modified = Files.getLastModifiedTime(shard);
    try (GantrySession session = GantrySession.open();
        Batches batches =
            EpochBatches.of(
                ShardSet.open(folder.resolve("set")).catalogue(), OrderOptions.of(32))) {
      epochThroughARing(session, batches);
      Path copy = Files.copy(shard, folder.resolve("copy"), StandardCopyOption.COPY_ATTRIBUTES);
      Path original = Files.move(shard, folder.resolve("original"));
      Files.move(copy, shard);
      assertThatThrownBy(() -> epochThroughARing(session, batches))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(shard + ": offset 0: changed-meanwhile: another file")
          .hasMessageContaining("open the dataset again");
      Files.move(original, shard, StandardCopyOption.REPLACE_EXISTING);
      epochThroughARing(session, batches);
      Files.setLastModifiedTime(shard, FileTime.fromMillis(modified.toMillis() + 1000));
      assertThatThrownBy(() -> epochThroughARing(session, batches))
          .hasMessageContaining("changed-meanwhile: it was modified");
      Files.setLastModifiedTime(shard, modified);
      epochThroughARing(session, batches);
      Files.write(shard, new byte[1], StandardOpenOption.APPEND);
      assertThatThrownBy(() -> epochThroughARing(session, batches))
          .hasMessageContaining("changed-meanwhile: it has");
    }
  }

  /// A copy has other inodes and modification times.
  @Test
  void aCopyOfAllFilesIsAsGood() throws IOException {
    Path copied = Files.createDirectory(folder.resolve("copied"));
    for (String name : TestShards.names(folder.resolve("set"))) {
      Files.copy(folder.resolve("set").resolve(name), copied.resolve(name));
    }
    TestShards.requireWhole(copied, TestShards.FIELDS, values, SAMPLES, "");
    try (GantrySession session = GantrySession.open();
        Batches batches = EpochBatches.of(ShardSet.open(copied).catalogue(), OrderOptions.of(32))) {
      epochThroughARing(session, batches);
    }
  }

  private void requireValues(FieldView view, byte[] slot, int first, int count) {
    Field field =
        TestShards.FIELDS.stream()
            .filter(one -> one.name().equals(view.name()))
            .findFirst()
            .orElseThrow();
    int bytes = (int) field.sampleBytes();
    assertThat(view.strides().getFirst() * field.dtype().alignmentBytes()).isEqualTo(bytes);
    assertThat(Arrays.copyOfRange(slot, (int) view.offset(), (int) view.offset() + count * bytes))
        .isEqualTo(
            Arrays.copyOfRange(values.get(view.name()), first * bytes, (first + count) * bytes));
  }
}
