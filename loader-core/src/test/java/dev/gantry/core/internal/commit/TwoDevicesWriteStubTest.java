// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Writes of one file from the memory of two devices.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class TwoDevicesWriteStubTest {
  private static final int LENGTH = 200_000;

  @TempDir Path folder;
  private final GantrySession gantry = GantrySession.open();

  @AfterEach
  void close() {
    gantry.close();
    StubControls.cuFile().direct(false);
  }

  private Loaded load(int device) {
    Path file = TestFiles.write(folder.resolve("device" + device), device, LENGTH);
    return gantry.load(
        List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1)),
        new Device.Cuda(device),
        TransferOptions.defaults().withTransport(Transport.STAGED));
  }

  @ParameterizedTest
  @CsvSource({"1, false", "1, true", "3, false", "3, true"})
  void partsOfBothComeTogether(int threads, boolean direct) throws IOException {
    StubControls.cuFile().direct(direct);
    Random random = new Random(threads);
    Path target = folder.resolve("target");
    ByteArrayOutputStream expected = new ByteArrayOutputStream();
    try (Loaded first = load(0);
        Loaded second = load(1)) {
      List<Source> parts = new ArrayList<>();
      for (int i = 0; i < 60; i++) {
        int device = i % 2;
        // The first requests are whole and aligned, so they may go past the CPU.
        int length = i < 6 ? 8192 : random.nextInt(5000);
        int from = i < 6 ? 4096 * i : random.nextInt(LENGTH - length);
        Loaded loaded = device == 0 ? first : second;
        long address = loaded.regions().getFirst().address() + from;
        parts.add(new Memory.OnDevice(new Device.Cuda(device), address, length));
        expected.write(TestFiles.bytes(device, LENGTH), from, length);
      }
      WriteReport report =
          gantry.write(
              List.of(new NewFile(target, parts)),
              WriteOptions.defaults().withRequestBytes(8192).withThreads(threads));
      assertThat(report.bytesByTransport().getOrDefault(Transport.GDS, 0L))
          .isEqualTo(direct ? 6 * 8192 : 0);
    }
    assertThat(Files.readAllBytes(target)).isEqualTo(expected.toByteArray());
  }
}
