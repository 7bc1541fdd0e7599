// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.testing.ChangingFile;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A file of a set of shards changes between any two calls of a reader that opens the set and
/// reads its batches.
@ExtendWith(NoLeaks.class)
class ChangingShardsTest {
  private static final int BATCH = 2;
  private static final int SAMPLES = 6;

  @TempDir Path folder;
  private Path set;
  private Path other;

  @BeforeEach
  void write() {
    set = write("set", 4);
    other = write("other", 14);
  }

  private Path write(String name, long seed) {
    try (GantrySession session = GantrySession.open()) {
      ShardWriter.write(
          session,
          folder.resolve(name),
          TestShards.FIELDS,
          SAMPLES,
          TestShards.sources(
              TestShards.FIELDS, TestShards.values(TestShards.FIELDS, seed, SAMPLES), 0, SAMPLES),
          TestShards.options());
    }
    return folder.resolve(name);
  }

  /// Returns the bytes of an epoch's batches and of the set's notes.
  private static byte[] epoch(GantrySession session, Path folder, CachePolicy policy) {
    ShardSet set = ShardSet.open(session, Location.of(folder));
    ByteArrayOutputStream got = new ByteArrayOutputStream();
    got.writeBytes(set.metadata().toString().getBytes(StandardCharsets.UTF_8));
    try (Batches batches =
        EpochBatches.of(set.catalogue(List.of("label", "image")), OrderOptions.of(BATCH))) {
      TransferOptions transfer =
          TransferOptions.defaults()
              .withThreads(1)
              .withCachePolicy(policy)
              .withLimits(EpochBatches.LIMITS);
      RingOptions options =
          new RingOptions(
              Device.HOST, 2, batches.slotBytes(), batches.hostBytes(), transfer, false);
      try (PrefetchRing<BatchView> ring =
          session.ring(options, new EpochChain(batches, batches.start(), 0))) {
        for (Optional<RingBatch<BatchView>> next = ring.next();
            next.isPresent();
            next = ring.next()) {
          try (RingBatch<BatchView> batch = next.get()) {
            for (int i = 0; i < set.fields().size() - 1; i++) {
              FieldView view = batch.label().fields().get(i);
              long bytes = view.name().equals("label") ? Long.BYTES : 1500;
              got.writeBytes(TestFiles.bytes(batch.region(view.offset(), BATCH * bytes)));
            }
          }
        }
      }
    }
    return got.toByteArray();
  }

  @ParameterizedTest
  @EnumSource
  void aShardsBatchesAreOfOneVersion(CachePolicy policy) throws IOException {
    Path shard = set.resolve("shard-00001.bin");
    ChangingFile.everywhere(
        shard,
        Files.readAllBytes(shard),
        Files.readAllBytes(other.resolve("shard-00001.bin")),
        (session, _) -> epoch(session, set, policy));
  }

  @Test
  void anIndexIsOfOneVersion() throws IOException {
    Path index = set.resolve(ShardSet.FILE_NAME);
    String text = Files.readString(index);
    ChangingFile.everywhere(
        index,
        text.getBytes(StandardCharsets.UTF_8),
        text.replace("a test", "b test").getBytes(StandardCharsets.UTF_8),
        (session, _) -> epoch(session, set, CachePolicy.BUFFERED));
  }
}
