// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
@Timeout(60)
class RemoteLoadStubTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;
  private static final int LENGTH = 100 * BLOCK + 77;
  private static final byte[] BYTES = TestFiles.bytes(7, LENGTH);
  private static final Device FIRST = new Device.Cuda(0);
  private static final Device SECOND = new Device.Cuda(1);
  private static final int CUDA_LAUNCH_FAILED = 719;

  private final StubControls cuda = StubControls.cuda();
  private final RangeServer server = new RangeServer();
  private final GantrySession gantry = GantrySession.open();
  private Location file;
  private List<ExtentRequest> wanted;

  @BeforeEach
  void put() {
    cuda.clear();
    file = server.put("weights", BYTES);
    wanted = new ArrayList<>();
    Random random = new Random(5);
    for (int at = 0; at < LENGTH; ) {
      int bytes = Math.min(LENGTH - at, 1 + random.nextInt(9 * BLOCK));
      wanted.add(new ExtentRequest(new Extent(file, at, bytes), 1 << random.nextInt(9)));
      at += bytes;
    }
  }

  @AfterEach
  void close() {
    cuda.clear();
    cuda.peers(true);
    gantry.close();
    server.close();
  }

  private static TransferOptions options() {
    return TransferOptions.defaults()
        .withThreads(2)
        .withLimits(new PlanLimits(2L * BLOCK, BLOCK, 40L * BLOCK));
  }

  private void check(Loaded loaded) {
    for (int i = 0; i < wanted.size(); i++) {
      Extent extent = wanted.get(i).extent();
      byte[] there = TestFiles.bytes(loaded.regions().get(i));
      assertThat(there).hasSize((int) extent.length());
      for (int at = 0; at < there.length; at++) {
        assertThat(there[at]).isEqualTo(BYTES[(int) extent.offset() + at]);
      }
    }
  }

  @Test
  void manyRequestsAreUnderWayToADeviceFromTwoThreads() {
    server.delay(30);
    try (Loaded loaded = gantry.load(wanted, FIRST, options())) {
      check(loaded);
      assertThat(server.mostUnderWay()).isGreaterThan(20);
      TransferReport report = loaded.report();
      assertThat(report.bytes(Transport.STAGED)).isEqualTo(report.bytes());
      assertThat(report.files())
          .containsExactly(
              new TransferReport.FileReport(
                  file, Transport.STAGED, "no gds: http files have no descriptor"));
    }
  }

  @Test
  void oneStreamTakesTheBytesOn() {
    gantry.freeIdle();
    long streams = cuda.calls("cuStreamCreate");
    try (Loaded loaded = gantry.load(wanted, FIRST, options().withThreads(5))) {
      check(loaded);
    }
    assertThat(cuda.calls("cuStreamCreate") - streams).isEqualTo(1);
  }

  @Test
  void eachOfTwoDevicesGetsEveryByteOnce() {
    for (boolean peers : new boolean[] {true, false}) {
      cuda.peers(peers);
      long sent = server.bytes();
      List<Loaded> loaded = gantry.loadOnEach(wanted, List.of(FIRST, SECOND), options());
      loaded.forEach(this::check);
      assertThat(server.bytes() - sent).isLessThan(LENGTH + LENGTH / 2);
      loaded.forEach(Loaded::close);
    }
  }

  @Test
  void checksumsAreTakenOnTheWay() {
    Extent first = wanted.getFirst().extent();
    int wrong = Crc32c.of(MemorySegment.ofArray(new byte[1]));
    KnownChecksums sums =
        new KnownChecksums(List.of(new KnownChecksums.Known(first, "tensor 'x'", wrong)));
    assertThat(
            catchThrowableOfType(
                MalformedFileException.class,
                () -> gantry.load(wanted, FIRST, options().withChecksums(sums)).close()))
        .hasMessageContaining("tensor 'x'");
  }

  /// The load must not change the rest of the memory.
  @Test
  void bytesArriveInMemoryOfTheCaller() {
    int bytes = 50 * BLOCK;
    try (Arena arena = Arena.ofShared()) {
      MemorySegment host = arena.allocate(bytes + 1);
      Memory memory = new Memory.OnHost(host.asSlice(0, bytes));
      TransferReport report =
          gantry.read(List.of(new ReadInto("x", new Extent(file, 3, bytes), memory)), options());
      assertThat(report.bytes(Transport.HOST)).isGreaterThanOrEqualTo(bytes);
      assertThat(host.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(Arrays.copyOfRange(BYTES, 3, 3 + bytes));
      assertThat(host.get(ValueLayout.JAVA_BYTE, bytes)).isZero();
    }
  }

  @Test
  void aCopyThatFailsIsOneErrorAndNothingStays() {
    cuda.fail("cuMemcpyHtoDAsync", 3, CUDA_LAUNCH_FAILED, 0);
    TransferException failure =
        catchThrowableOfType(
            TransferException.class, () -> gantry.load(wanted, FIRST, options()).close());
    assertThat(failure.failure()).isInstanceOf(Failure.Cuda.class);
  }

  @Test
  void anAnswerThatFailsIsOneErrorAndNothingStays() {
    server.answer(number -> number < 9 ? Answer.RIGHT : Answer.NOT_FOUND);
    TransferException failure =
        catchThrowableOfType(
            TransferException.class, () -> gantry.load(wanted, FIRST, options()).close());
    assertThat(failure.isNotFound()).isTrue();
  }

  @Test
  void aCancellationEndsRequestsThatHang() throws Exception {
    server.answer(number -> number < 3 ? Answer.RIGHT : Answer.SILENT);
    Cancellation cancellation = new Cancellation();
    CompletableFuture<TransferException> ended =
        CompletableFuture.supplyAsync(() ->
            catchThrowableOfType(
                TransferException.class,
                () ->
                    gantry.load(wanted, FIRST, options().withCancellation(cancellation)).close()));
    Latches.awaitThat(() -> server.requests() >= 20);
    cancellation.cancel();
    assertThat(ended.get(10, TimeUnit.SECONDS).failure()).isEqualTo(new Failure.Cancelled());
  }

  /// @param buffers how many buffers the driver pins before it refuses one
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void fewPinnedBuffersBringEverything(int buffers) {
    gantry.freeIdle();
    TransferOptions large =
        options().withLimits(PlanLimits.DEFAULT.withRequestBytes(64L << 10)).withThreads(4);
    cuda.fail("cuMemHostRegister", buffers + 1, 2, 0);
    try (Loaded loaded = gantry.load(wanted, FIRST, large)) {
      check(loaded);
    }
  }
}
