// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A session, the files that its rings read, and the batches of plans that tests of all rings
/// share.
@ExtendWith(NoLeaks.class)
abstract class RingFixture {
  static final int BLOCK = Recipes.BLOCK;

  @TempDir Path folder;
  final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  final GantrySession gantry = Sessions.over(calls);
  Recipes recipes;

  /// The device that holds the slots.
  abstract Device device();

  /// The transport that the ring must use; null lets the transfer engine choose.
  @Nullable Transport transport() {
    return null;
  }

  @BeforeEach
  void writeFiles() {
    recipes = new Recipes(folder);
  }

  @AfterEach
  void closeSession() {
    gantry.close();
  }

  TransferOptions transfer() {
    return TransferOptions.defaults()
        .withTransport(transport())
        .withThreads(3)
        .withLimits(PlanLimits.DEFAULT.withRequestBytes(Recipes.REQUEST_BYTES));
  }

  RingOptions options(int slots, TransferOptions transfer) {
    return new RingOptions(device(), slots, Recipes.SLOT_BYTES, Recipes.HOST_BYTES, transfer, true);
  }

  RingOptions options(int slots) {
    return options(slots, transfer());
  }

  /// A plan that reads one block of the file; the label is the block's number.
  static BatchPlan<Integer> block(Path file, int number) {
    return new BatchPlan<>(
        List.of(new Read(Location.of(file), (long) number * BLOCK, BLOCK, BLOCK, 0, 0)),
        HostWrites.NONE,
        List.of(),
        number);
  }

  /// A plan whose bytes a host writer makes.
  static BatchPlan<Integer> written(int label, HostWrites.HostWriter writer) {
    return new BatchPlan<>(List.of(), new HostWrites(0, 8, List.of(writer)), List.of(), label);
  }

  static BatchPlan<Integer> number(int number) {
    return written(number, target -> target.set(ValueLayout.JAVA_LONG, 0, number));
  }

  static <T> RingBatch<T> take(PrefetchRing<T> ring) {
    return ring.next().orElseThrow();
  }

  static void awaitSleep(Thread thread) {
    while (thread.getState() != Thread.State.WAITING) {
      assertThat(thread.isAlive()).isTrue();
      LockSupport.parkNanos(1_000_000);
    }
  }
}
