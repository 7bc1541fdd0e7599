// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Reads into many pieces of memory, by a libcufile that fills several pieces with one request.
@Tag("gpu-stub")
class VectorReadStubTest extends DeviceMemoryReadContract {
  private static final int PARTS = 100;
  private static final int BYTES = 20_000;
  private static final int EIO = 5;
  private static final int INTERNAL_ERROR = 5030;

  private final StubControls cuFile = StubControls.of(NativeStubs.newCuFile());

  @BeforeEach
  void theNewestLibraryIsThere() {
    System.setProperty(CuFile.PROPERTY, NativeStubs.newCuFile().toString());
    cuFile.clear();
    cuFile.direct(true);
  }

  @AfterEach
  void nothingIsLeft() {
    gantry.close();
    cuFile.limit(-1);
    cuFile.clear();
    cuFile.direct(false);
    System.clearProperty(CuFile.PROPERTY);
    assertThat(cuFile.count("buffers")).isZero();
    assertThat(cuFile.count("opened")).isZero();
  }

  private TransferOptions direct() {
    return options()
        .withCachePolicy(CachePolicy.DIRECT)
        .withThreads(1)
        .withLimits(PlanLimits.DEFAULT);
  }

  /// Returns the beginning of the file in parts, whose order in memory differs from their order in
  /// the file.
  private List<ReadInto> parts(Block block) {
    List<ReadInto> parts = new ArrayList<>();
    for (int i = 0; i < PARTS; i++) {
      parts.add(
          new ReadInto(
              "w" + i,
              new Extent(first, (long) i * BYTES, BYTES),
              block.memory().slice(place(i), BYTES)));
    }
    return parts;
  }

  private static long place(int part) {
    return (long) (part * 37 % PARTS) * BYTES;
  }

  private void requireRead(Block block) {
    byte[] expected = TestFiles.bytes(1, PARTS * BYTES);
    // The stub's device memory is host memory, so the test reads it directly.
    MemorySegment read =
        MemorySegment.ofAddress(((Memory.OnDevice) block.memory()).address())
            .reinterpret((long) PARTS * BYTES);
    for (int i = 0; i < PARTS; i++) {
      assertThat(
              MemorySegment.mismatch(
                  read,
                  place(i),
                  place(i) + BYTES,
                  MemorySegment.ofArray(expected),
                  (long) i * BYTES,
                  (long) (i + 1) * BYTES))
          .as("part %d", i)
          .isEqualTo(-1);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"GDS", "COMPAT"})
  void smallNeighboursAreReadByOneRequestAndEachByteOnce(Transport transport) {
    long before = cuFile.count("bytes read");
    try (Block block = allocate(PARTS * BYTES, (byte) 0)) {
      TransferReport report = gantry.read(parts(block), direct().withTransport(transport));
      assertThat(report.bytesByTransport()).containsOnlyKeys(transport);
      requireRead(block);
    }
    assertThat(cuFile.calls("cuFileReadv")).isEqualTo(1);
    assertThat(cuFile.calls("cuFileRead")).isZero();
    assertThat(cuFile.count("bytes read") - before).isEqualTo(PARTS * BYTES);
  }

  @Test
  void bytesThatAreWantedTwiceAreReadOnceAndCopiedOnTheDevice() {
    long before = cuFile.count("bytes read");
    try (Block block = allocate(2 * PARTS * BYTES, (byte) 0)) {
      List<ReadInto> twice = new ArrayList<>(parts(block));
      for (ReadInto part : parts(block)) {
        long behind = PARTS * BYTES + part.extent().offset();
        twice.add(
            new ReadInto(
                part.name() + " again", part.extent(), block.memory().slice(behind, BYTES)));
      }
      assertThat(gantry.read(twice, direct()).bytesByTransport()).containsOnlyKeys(Transport.GDS);
      requireRead(block);
      MemorySegment again =
          MemorySegment.ofAddress(((Memory.OnDevice) block.memory()).address() + PARTS * BYTES)
              .reinterpret(PARTS * BYTES);
      assertThat(again.mismatch(MemorySegment.ofArray(TestFiles.bytes(1, PARTS * BYTES))))
          .isEqualTo(-1);
    }
    assertThat(cuFile.count("bytes read") - before).isEqualTo(PARTS * BYTES);
  }

  @Test
  void aRequestHasNoMorePiecesThanTheKernelTakes() {
    int parts = CuFile.MAX_PIECES + 10;
    try (Block block = allocate(parts * 16, (byte) 0)) {
      List<ReadInto> all = new ArrayList<>();
      for (int i = 0; i < parts; i++) {
        all.add(
            new ReadInto(
                "w" + i, new Extent(first, i * 16L, 16), block.memory().slice(i * 16L, 16)));
      }
      assertThat(gantry.read(all, direct()).bytesByTransport()).containsOnlyKeys(Transport.GDS);
    }
    assertThat(cuFile.calls("cuFileReadv")).isEqualTo(2);
  }

  @Test
  void largePiecesAreReadByThemselvesToTheirRegisteredMemory() {
    int half = 1 << 20;
    long wrong = cuFile.count("wrong base");
    try (Block block = allocate(2 * half, (byte) 0)) {
      TransferReport report =
          gantry.read(
              List.of(
                  new ReadInto("a", new Extent(first, 0, half), block.memory().slice(half, half)),
                  new ReadInto("b", new Extent(first, half, half), block.memory().slice(0, half))),
              direct());
      assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    }
    assertThat(cuFile.calls("cuFileReadv")).isZero();
    assertThat(cuFile.calls("cuFileRead")).isEqualTo(2);
    assertThat(cuFile.count("wrong base")).isEqualTo(wrong);
  }

  @Test
  void shortCountsAreContinuedWithinAPiece() {
    cuFile.limit(BYTES * 3 / 2);
    try (Block block = allocate(PARTS * BYTES, (byte) 0)) {
      assertThat(gantry.read(parts(block), direct()).bytesByTransport())
          .containsOnlyKeys(Transport.GDS);
      requireRead(block);
    }
    assertThat(cuFile.calls("cuFileReadv")).isGreaterThanOrEqualTo(PARTS * 2 / 3);
  }

  @Test
  void shortCountsOfALargePieceAreContinuedAndLeaveTheMemoryBehindIt() {
    int half = 1 << 20;
    cuFile.limit(300_000);
    try (Block block = allocate(2 * half, (byte) 7)) {
      gantry.read(
          List.of(new ReadInto("a", new Extent(first, 0, half), block.memory().slice(0, half))),
          direct().withTransport(Transport.GDS));
      byte[] expected = Arrays.copyOf(TestFiles.bytes(1, half), 2 * half);
      Arrays.fill(expected, half, 2 * half, (byte) 7);
      assertThat(Arrays.mismatch(block.bytes(), expected)).isEqualTo(-1);
    }
  }

  @Test
  @Timeout(60)
  void aReadOfNothingIsAnErrorAndNoEndlessLoop() {
    cuFile.limit(0);
    TransferOptions options = direct().withTransport(Transport.GDS);
    try (Block block = allocate(PARTS * BYTES, (byte) 0)) {
      List<ReadInto> parts = parts(block);
      assertThatThrownBy(() -> gantry.read(parts, options))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("cuFileReadv failed: " + first);
      assertThatThrownBy(() -> gantry.read(parts.subList(0, 1), options))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("cuFileRead failed: " + first);
    }
  }

  @Test
  void aRequestThatFailsIsStaged() {
    cuFile.fail("cuFileReadv", 1, -1, EIO);
    try (Block block = allocate(PARTS * BYTES, (byte) 0)) {
      TransferReport report = gantry.read(parts(block), direct());
      assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
      assertThat(report.files().getFirst().reason()).contains("cuFileReadv", "EIO");
      requireRead(block);
    }
  }

  @Test
  void aCodeWithoutItsSignIsNoCountOfBytes() {
    cuFile.fail("cuFileReadv", 1, INTERNAL_ERROR, 0);
    try (Block block = allocate(PARTS * BYTES, (byte) 0)) {
      assertThatThrownBy(() -> gantry.read(parts(block), direct().withTransport(Transport.GDS)))
          .hasMessageContaining("CU_FILE_INTERNAL_ERROR");
    }
  }
}
