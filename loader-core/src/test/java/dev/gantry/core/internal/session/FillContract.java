// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Bytes that the CPU writes, in the memory of a device.
@ExtendWith(NoLeaks.class)
abstract class FillContract {
  private static final int[] SIZES = {1, 4096, 0, 100_000, 63, 65, 8192, 0};

  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  abstract Device device();

  private static byte[] bytes(int number) {
    byte[] bytes = new byte[SIZES[number]];
    new Random(number).nextBytes(bytes);
    return bytes;
  }

  private static List<HostFill> fills() {
    List<HostFill> fills = new ArrayList<>();
    for (int i = 0; i < SIZES.length; i++) {
      byte[] bytes = bytes(i);
      fills.add(
          new HostFill(
              bytes.length,
              target -> {
                assertThat(target.byteSize()).isEqualTo(bytes.length);
                target.copyFrom(MemorySegment.ofArray(bytes));
              }));
    }
    return fills;
  }

  /// The bytes lie in one slab or in several.
  @Test
  void whatWasWrittenIsThere() {
    for (long slabBytes : new long[] {512 << 20, 8192}) {
      List<Long> progress = new ArrayList<>();
      TransferOptions options =
          TransferOptions.defaults()
              .withLimits(new PlanLimits(8 << 20, 0, slabBytes))
              .withProgress((done, _) -> progress.add(done));
      try (Loaded loaded = session.fill(fills(), device(), options)) {
        for (int i = 0; i < SIZES.length; i++) {
          Region region = loaded.regions().get(i);
          byte[] there = new byte[SIZES[i]];
          region.copyTo(MemorySegment.ofArray(there));
          assertThat(there).isEqualTo(bytes(i));
          assertThat(region.address() % 64).isZero();
        }
        assertThat(loaded.report().bytes(Transport.HOST)).isEqualTo(112_417);
      }
      assertThat(progress).isSorted().last().isEqualTo(112_417L);
    }
  }

  @Test
  void nothingIsLeftOfAFailure() {
    List<HostFill> fills = fills();
    fills.set(
        6,
        new HostFill(
            10,
            _ -> {
              throw new IllegalStateException("cannot");
            }));
    TransferOptions options =
        TransferOptions.defaults().withLimits(new PlanLimits(8 << 20, 0, 8192));
    assertThatThrownBy(() -> session.fill(fills, device(), options))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("cannot");
  }

  @Test
  void aCancelledFillEnds() {
    TransferOptions options = TransferOptions.defaults();
    List<HostFill> fills = fills();
    fills.set(1, new HostFill(4096, _ -> options.cancellation().cancel()));
    assertThatThrownBy(() -> session.fill(fills, device(), options))
        .isInstanceOfSatisfying(
            TransferException.class,
            failed -> assertThat(failed.failure()).isEqualTo(new Failure.Cancelled()));
  }
}
