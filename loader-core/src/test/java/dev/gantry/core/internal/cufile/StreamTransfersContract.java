// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.natives.CudaDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What reads and writes in a stream's order owe their callers, whatever the library.
abstract class StreamTransfersContract extends CuFileRequests {
  static final int REQUESTS = 10_000;

  CudaDriver.Stream stream;

  @BeforeEach
  void openStream() {
    stream = entered(() -> context.driver().createStream());
    closing(() ->
        entered(() -> {
          context.driver().destroy(stream);
          return stream;
        }));
  }

  <T> T entered(java.util.function.Supplier<T> action) {
    try (var _ = context.enter()) {
      return action.get();
    }
  }

  /// Whether streams are registered with cuFile.
  abstract boolean registers();

  StreamTransfers transfers() {
    return new StreamTransfers(
        cuFile.streams().orElseThrow(AssertionError::new), context, stream, registers());
  }

  void read(StreamTransfers transfers, CuFileHandle file, Landing landing) {
    transfers.read(
        file,
        memory(),
        landing.slabOffset(),
        landing.fileOffset(),
        landing.length(),
        landing.length());
  }

  @Test
  void randomReadsArriveAndNothingElseIsWritten() throws IOException {
    CuFileHandle file = weights();
    Random random = new Random(3);
    try (StreamTransfers transfers = transfers()) {
      for (int done = 0; done < REQUESTS; ) {
        empty();
        List<Landing> landings = random(random, REQUESTS - done);
        landings.forEach(landing -> read(transfers, file, landing));
        transfers.check();
        assertHolds(landings);
        done += landings.size();
      }
    }
  }

  @Test
  void theStreamsOtherWorkComesBeforeAndAfter() throws IOException {
    CuFileHandle file = weights();
    DeviceSlab behind = DeviceSlab.allocate(context, 1 << 20);
    closing(behind::release);
    Landing place = new Landing(aligned(5000), Math.max(1000, alignment()), 4096);
    try (StreamTransfers transfers = transfers()) {
      entered(() -> {
        context.driver().fill(slab.address(), (byte) 1, 1 << 20, stream);
        return stream;
      });
      read(transfers, file, place);
      entered(() -> {
        context.driver().copyOnDevice(behind.address(), slab.address(), 1 << 20, stream);
        context.driver().fill(slab.address(), EMPTY, 1 << 20, stream);
        return stream;
      });
      transfers.check();
      entered(() -> {
        context.driver().synchronize(stream);
        context.driver().copyOnDevice(slab.address(), behind.address(), 1 << 20, stream);
        context.driver().synchronize(stream);
        return stream;
      });
    }
    byte[] expected = new byte[1 << 20];
    Arrays.fill(expected, (byte) 1);
    System.arraycopy(bytes, (int) place.fileOffset(), expected, 4096, place.length());
    assertThat(Arrays.mismatch(Arrays.copyOf(slabBytes(), 1 << 20), expected)).isNegative();
  }

  @Test
  void randomWritesArrive() throws IOException {
    CuFileHandle source = weights();
    Path path = Files.write(folder.resolve("written"), new byte[0]);
    CuFileHandle file = handle(path);
    byte[] expected = new byte[aligned(1_000_000)];
    try (StreamTransfers transfers = transfers()) {
      read(transfers, source, new Landing(0, expected.length, 0));
      Random random = new Random(5);
      int at = 0;
      while (at < expected.length) {
        int some =
            Math.max(alignment(), aligned(1 + random.nextInt(alignment() == 1 ? 2000 : 30_000)));
        int length = Math.min(some, expected.length - at);
        if (random.nextInt(4) > 0 || at + length == expected.length) {
          transfers.write(file, memory(), at, at, length);
          System.arraycopy(bytes, at, expected, at, length);
        }
        at += length;
      }
      transfers.check();
    }
    assertThat(Arrays.mismatch(Files.readAllBytes(path), expected)).isNegative();
  }

  @Test
  void theEndOfTheFileIsAFailureOnlyIfMoreWasRequired() throws IOException {
    CuFileHandle file = weights();
    try (StreamTransfers transfers = transfers()) {
      int at = aligned(FILE_BYTES - 100);
      int there = FILE_BYTES - at;
      transfers.read(file, memory(), 0, at, 4096, there);
      transfers.check();
      assertHolds(List.of(new Landing(at, there, 0)));
      transfers.read(file, memory(), 0, at, 4096, there + 1);
      TransferException failure = catchThrowableOfType(TransferException.class, transfers::finish);
      if (!(failure.failure() instanceof Failure.EndOfFile)) {
        throw failure;
      }
      assertThat(failure.failure()).isEqualTo(new Failure.EndOfFile(1));
      assertThat(failure).hasMessageContaining(file.file() + " offset " + FILE_BYTES);
      transfers.check();
    }
  }

  @Test
  void closingWaitsForWhatIsUnderWay() throws IOException {
    CuFileHandle file = weights();
    List<Landing> landings = random(new Random(12), 100);
    StreamTransfers transfers = transfers();
    landings.forEach(landing -> read(transfers, file, landing));
    transfers.check();
    landings.forEach(landing -> read(transfers, file, landing));
    transfers.close();
    transfers.close();
    assertHolds(landings);
  }
}
