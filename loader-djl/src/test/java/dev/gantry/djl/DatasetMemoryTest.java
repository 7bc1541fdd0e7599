// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.translate.TranslateException;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Datasets take the memory of their slots, by the counters of memory in use.
@ExtendWith(NoLeaks.class)
class DatasetMemoryTest {
  private static final int SAMPLES = 500;

  @TempDir private Path folder;
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager(Device.cpu());
    Path _ = ImageShards.write(folder, SAMPLES, 150);
    LiveResources.forgetMostUsed();
    assertThat(LiveResources.mostUsed()).as("in use before").isEqualTo(MemoryUse.NOTHING);
  }

  @AfterEach
  void close() {
    manager.close();
  }

  private ShardDataset.Builder shards(int batch) {
    return ShardDataset.builder().setPath(folder).setSampling(batch).optLabels("label");
  }

  /// Runs two epochs; the session may have kept the bytes of the first one for the second.
  ///
  /// @return the largest memory use of both epochs
  private static MemoryUse twoEpochs(ResumableDataset dataset, NDManager manager)
      throws IOException, TranslateException {
    LiveResources.forgetMostUsed();
    for (int epoch = 0; epoch < 2; epoch++) {
      for (Batch batch : dataset.getData(manager)) {
        batch.close();
      }
    }
    return LiveResources.mostUsed();
  }

  @Test
  void anIterationEndsWithTheManagerOfItsBatches() throws IOException, TranslateException {
    try (ShardDataset dataset = shards(32).build()) {
      LiveResources.Snapshot before = NoLeaks.held();
      try (NDManager own = manager.newSubManager()) {
        dataset.getData(own).iterator().next().close();
        assertThat(NoLeaks.held()).isNotEqualTo(before);
      }
      assertThat(NoLeaks.held()).isEqualTo(before);
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 2", "32, 2", "33, 5", "500, 3"})
  void aRingTakesItsSlots(int batch, int slots) throws IOException, TranslateException {
    for (CachePolicy policy : CachePolicy.values()) {
      for (ShardDataset.Builder builder :
          new ShardDataset.Builder[] {
            shards(batch),
            shards(batch).optShuffle(7),
            shards(batch).optShuffleBlocks(7, 4),
            shards(batch).optShuffle(7).optNormalize("image", 2, 1)
          }) {
        try (ShardDataset dataset = builder.optPrefetch(slots).optCachePolicy(policy).build()) {
          MemoryUse used = twoEpochs(dataset, manager);
          assertThat(used).isEqualTo(new MemoryUse(0, 0, used.hostBytes() / slots * slots));
          // Each field is read in whole blocks, and the results are FLOAT32.
          assertThat(used.hostBytes() / slots)
              .isBetween(27L * batch, batch * (27L + 4 * 15 + 6 * 4096) + 16 * 4096);
        }
      }
    }
  }

  @Test
  void aMixtureTakesThatOfItsParts() throws IOException, TranslateException {
    ShardDataset first = shards(10).build();
    ShardDataset second = shards(20).optShuffle(1).optPrefetch(4).build();
    MemoryUse each = twoEpochs(first, manager).plus(twoEpochs(second, manager));
    try (MixedDataset mixed =
        MixedDataset.builder().addDataset(first, 1).addDataset(second, 1).build()) {
      assertThat(twoEpochs(mixed, manager)).isEqualTo(each);
    }
  }

  /// Makes a shard with one sample of 64 GiB as a sparse file.
  private static Path hugeShard(Path folder) throws IOException {
    long bytes = 1L << 36;
    long block = 1L << 30;
    Files.createDirectory(folder);
    try (RandomAccessFile out =
        new RandomAccessFile(folder.resolve("shard-00000.bin").toFile(), "rw")) {
      out.setLength(bytes);
    }
    Files.writeString(
        folder.resolve("shards.json"),
        """
        {"format": "gantry-shards", "version": 1, "samples": 1, "block_bytes": %d,
         "fields": [{"name": "image", "dtype": "U8", "shape": [%d]}], "metadata": {},
         "shards": [{"file": "shard-00000.bin", "samples": 1, "bytes": %d, "offsets": [0],
                     "crc32c": "%s"}]}
        """
            .formatted(block, bytes, bytes, "00000000".repeat((int) (bytes / block))));
    return folder;
  }

  @Test
  void moreThanThereIsIsRefusedBeforeAnythingIsTaken() throws IOException {
    try (ShardDataset dataset =
        ShardDataset.builder()
            .setPath(hugeShard(folder.resolve("huge")))
            .setSampling(1)
            .optLabels()
            .optPrefetch(64)
            .build()) {
      assertThatThrownBy(() -> dataset.getData(manager).iterator())
          .isInstanceOf(TransferException.class)
          .hasMessageMatching(".* 43980\\d{8} bytes of host memory.* are available.*optPrefetch.*");
      assertThat(LiveResources.mostUsed()).isEqualTo(MemoryUse.NOTHING);
    }
  }
}
