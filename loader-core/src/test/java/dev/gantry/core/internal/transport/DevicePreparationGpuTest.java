// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.threads.Preparations;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@Tag("gpu")
@ExtendWith(NoLeaks.class)
class DevicePreparationGpuTest {
  private static final Device GPU = new Device.Cuda(0);

  @TempDir Path folder;

  private static long pinned() {
    return LiveResources.snapshot().pinnedBytes();
  }

  @Test
  void aLoadUsesTheBuffersThatWerePrepared() {
    Path file = TestFiles.write(folder.resolve("a.bin"), 1, 1 << 20);
    TransferOptions options = TransferOptions.defaults().withTransport(Transport.STAGED);
    try (GantrySession session = GantrySession.open()) {
      session.freeIdle();
      session.prepare(GPU);
      Preparations.await();
      long prepared = pinned();
      assertThat(prepared).isPositive();
      List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, 1 << 20), 1));
      try (Loaded loaded = session.load(all, GPU, options)) {
        assertThat(TestFiles.firstDifference(loaded, all)).isEmpty();
      }
      assertThat(pinned()).isEqualTo(prepared);
    }
    assertThat(pinned()).isZero();
  }

  @Test
  void closingWaitsForIt() {
    try (GantrySession session = GantrySession.open()) {
      session.prepare(GPU);
    }
    assertThat(pinned()).isZero();
  }

  @Test
  void aDeviceThatIsNotThereIsReportedByTheLoad() throws IOException {
    Path file = Files.write(folder.resolve("a.bin"), new byte[100]);
    Device absent = new Device.Cuda(4711);
    try (GantrySession session = GantrySession.open()) {
      session.prepare(absent);
      Preparations.await();
      List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, 100), 1));
      assertThatExceptionOfType(DeviceUnavailableException.class)
          .isThrownBy(() -> session.load(all, absent, TransferOptions.defaults()))
          .withMessageContaining("cuda:4711 is not available");
    }
  }

  @Test
  void theHostNeedsNone() {
    try (GantrySession session = GantrySession.open()) {
      session.freeIdle();
      session.prepare(Device.HOST);
      Preparations.await();
      assertThat(pinned()).isZero();
    }
  }
}
