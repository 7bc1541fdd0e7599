// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.index.RingReplay.Views;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.NullSource;

/// Batches of indexed files in slots on a device.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class IndexedBatchesGpuTest {
  private static final int SEEDS = 6;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));

  @AfterEach
  void close() {
    session.close();
  }

  /// @param path the transport to use; null lets the transfer engine choose
  private Views check(@Nullable Transport path, long seed, boolean even, OrderOptions order)
      throws IOException {
    Path files = Files.createDirectory(folder.resolve(seed + " " + even));
    return new RingReplay(
            session,
            context.device(),
            3,
            TransferOptions.defaults().withThreads(2).withTransport(path),
            context::synchronize)
        .check(new RandomDataset(session, files, seed, even), order, EpochBatches.LIMITS);
  }

  @ParameterizedTest
  @NullSource
  @EnumSource(names = {"STAGED", "MAPPED"})
  void slotsHoldWhatTheSequentialReaderDecodes(@Nullable Transport path) throws IOException {
    Views even = new Views(0, 0);
    for (long seed = 0; seed < SEEDS; seed++) {
      even = even.plus(check(path, seed, true, OrderOptions.of(4)));
      Shuffle blocks = new Shuffle.Blocks(seed, 2);
      Views _ = check(path, seed, false, new OrderOptions(8, LastBatch.KEEP, blocks, 1, 1, 0, 1));
    }
    // The kernel packs the fields while it fetches them.
    if (path != Transport.MAPPED) {
      assertThat(even.strided()).as("fields that stay where they are read").isPositive();
    }
    assertThat(even.dense()).as("fields that are packed").isPositive();
  }
}
