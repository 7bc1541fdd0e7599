package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Gantry;
import dev.gantry.core.plan.ReadPlan.Read;
import dev.gantry.core.ring.Filling;
import dev.gantry.core.ring.FillingSource;
import dev.gantry.core.testing.NoLeaks;
import dev.gantry.formats.dataset.BatchView;
import dev.gantry.formats.dataset.Batches;
import dev.gantry.formats.dataset.EpochBatches;
import dev.gantry.formats.dataset.Field;
import dev.gantry.formats.dataset.FieldView;
import dev.gantry.formats.dataset.OrderOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// What batches of shards are read by: as little as there can be.
@ExtendWith(NoLeaks.class)
class ShardBatchesTest {
  private static final int PER_SHARD = 96;
  private static final int SAMPLES = 2 * PER_SHARD;

  @TempDir Path folder;
  private final Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 4, SAMPLES);

  @BeforeEach
  void write() {
    try (Gantry session = Gantry.open()) {
      NewShards.write(
          session,
          folder.resolve("set"),
          TestShards.FIELDS,
          SAMPLES,
          TestShards.sources(TestShards.FIELDS, values, 0, SAMPLES),
          TestShards.options().withSamplesPerShard(PER_SHARD));
    }
  }

  private List<Filling<BatchView>> epoch(Batches batches) {
    List<Filling<BatchView>> epoch = new ArrayList<>();
    try (FillingSource<BatchView> source = batches.from(batches.start())) {
      for (Optional<Filling<BatchView>> next = source.next();
          next.isPresent();
          next = source.next()) {
        epoch.add(next.get());
      }
    }
    return epoch;
  }

  /// The bytes of a slot that is filled so, when nothing has to be made or copied.
  private static byte[] read(Filling<BatchView> filling, long slotBytes) {
    byte[] slot = new byte[Math.toIntExact(slotBytes)];
    for (Read read : filling.reads()) {
      byte[] file = TestShards.read(read.file());
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
            ShardSet.open(folder.resolve("set")).store(names), OrderOptions.of(batchSize))) {
      List<Filling<BatchView>> epoch = epoch(batches);
      assertThat(epoch).hasSize(SAMPLES / batchSize);
      for (int i = 0; i < epoch.size(); i++) {
        Filling<BatchView> filling = epoch.get(i);
        assertThat(filling.reads()).hasSizeLessThanOrEqualTo(2);
        assertThat(filling.copies()).isEmpty();
        assertThat(filling.made().bytes()).isZero();
        assertThat(filling.reads())
            .allMatch(read -> read.fileOffset() % 4096 == 0 && read.slabOffset() % 4096 == 0);
        byte[] slot = read(filling, batches.slotBytes());
        for (int field = 0; field < names.size(); field++) {
          requireValues(filling.label().fields().get(field), slot, i * batchSize, batchSize);
        }
      }
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
