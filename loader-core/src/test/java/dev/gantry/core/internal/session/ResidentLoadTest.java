// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Bytes that a server keeps, as its clients load them.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class ResidentLoadTest {
  private static final int BYTES = 3 << 20;
  private static final int HEADER = 1000;
  private static final int END = BYTES - 500;

  @TempDir private Path folder;

  @Test
  void theHostsMemoryIsMapped() throws IOException {
    check(Device.HOST);
  }

  @Test
  @Tag("gpu")
  void aGpusMemoryIsMapped() throws IOException {
    check(new Device.Cuda(0));
  }

  private void check(Device device) throws IOException {
    byte[] bytes = new byte[BYTES];
    new Random(1).nextBytes(bytes);
    Path file = Files.write(folder.resolve("weights"), bytes);
    Path small = Files.writeString(folder.resolve("config.json"), "{}");
    Path socket = folder.resolve("private/s.sock");
    Thread serving;
    try (GantrySession session = GantrySession.open();
        ResidentServer server = ResidentServer.listen(socket, _ -> {})) {
      server.publish(
          session.keepResident(
              1,
              "weights",
              List.of(
                  new ResidentSource(Location.of(file), BYTES, HEADER, END),
                  new ResidentSource(Location.of(small), 2, 0, 0)),
              device,
              TransferOptions.defaults()));
      serving = Thread.ofPlatform().start(server::run);
      session.freeIdle();
      LiveResources.Snapshot before = LiveResources.snapshot();
      try (ResidentWeights held = ResidentWeights.hold(server.location())) {
        assertThat(held.device()).isEqualTo(device);
        Location kept = held.entry();
        // The offset of the last extent is not aligned.
        List<ExtentRequest> wanted =
            List.of(
                new ExtentRequest(new Extent(kept, HEADER, 4096), 256),
                new ExtentRequest(new Extent(kept, END - 8, 8), 1),
                new ExtentRequest(new Extent(kept, HEADER + 2, 4), 4));
        try (Loaded loaded = session.load(wanted, device, TransferOptions.defaults())) {
          for (int i = 0; i < 3; i++) {
            assertThat(copy(loaded.regions().get(i)))
                .isEqualTo(copy(bytes, wanted.get(i).extent()));
          }
          assertThat(loaded.regions().getFirst().isReadOnly()).isTrue();
          assertThat(loaded.regions().get(2).isReadOnly()).isFalse();
        }
        session.freeIdle();
        assertThat(LiveResources.snapshot()).isEqualTo(before);
        // This read by the CPU crosses from the memory file to device memory and back.
        Extent whole = new Extent(kept, 0, BYTES);
        TransferOptions options = TransferOptions.defaults();
        try (Loaded loaded =
            session.load(List.of(new ExtentRequest(whole, 1)), Device.HOST, options)) {
          assertThat(copy(loaded.regions().getFirst())).isEqualTo(bytes);
        }
      }
    }
    Cleanup.join(serving);
  }

  private static byte[] copy(Region region) {
    byte[] copy = new byte[(int) region.length()];
    region.copyTo(MemorySegment.ofArray(copy));
    return copy;
  }

  private static byte[] copy(byte[] bytes, Extent extent) {
    return Arrays.copyOfRange(bytes, (int) extent.offset(), (int) extent.end());
  }

  /// No process can change the memory file, not even its size.
  @Test
  void theMemoryIsSealed() throws IOException {
    Path file = Files.write(folder.resolve("weights"), new byte[5000]);
    try (GantrySession session = GantrySession.open();
        ResidentImage image =
            session.keepResident(
                1,
                "weights",
                List.of(new ResidentSource(Location.of(file), 5000, 8, 5000)),
                Device.HOST,
                TransferOptions.defaults())) {
      assertThat(image.bytes()).isEqualTo(5248);
      assertThat(image.catalogue().parts().getFirst().hostPhase()).isEqualTo(248);
      try (FileChannel memory = FileChannel.open(memoryFile(), StandardOpenOption.WRITE)) {
        assertThatThrownBy(() -> memory.write(ByteBuffer.allocate(1), 0))
            .isInstanceOf(IOException.class)
            .hasMessage("Operation not permitted");
        assertThatThrownBy(() -> memory.truncate(1))
            .isInstanceOf(IOException.class)
            .hasMessage("Operation not permitted");
        assertThatThrownBy(() -> memory.write(ByteBuffer.allocate(1), 1 << 20))
            .isInstanceOf(IOException.class)
            .hasMessage("Operation not permitted");
        assertThat(memory.size()).isEqualTo(5248);
      }
    }
  }

  /// Returns the only memory file of this process.
  private static Path memoryFile() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      for (Path file : files.toList()) {
        if (Files.isSymbolicLink(file)
            && Files.readSymbolicLink(file).toString().contains("gantry-resident")) {
          return file;
        }
      }
    }
    throw new AssertionError("no memory file");
  }
}
