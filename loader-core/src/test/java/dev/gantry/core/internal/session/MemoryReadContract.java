// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The rules for reads into given memory: they write all wanted bytes at any offset of file and
/// memory, and change no other byte; a failed read reports which parts are complete.
@ExtendWith(NoLeaks.class)
abstract class MemoryReadContract {
  private static final int LENGTH = 3_000_001;
  private static final byte BEFORE = 0x5A;

  @TempDir Path folder;
  final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  final GantrySession gantry = GantrySession.open(calls);
  Path first;
  private Path second;

  /// Memory of the kind under test, whose bytes are [#BEFORE] at first.
  interface Block extends AutoCloseable {
    Memory memory();

    byte[] bytes();

    @Override
    void close();
  }

  abstract Block allocate(int bytes, byte value);

  @Nullable Transport transport() {
    return null;
  }

  TransferOptions options() {
    return TransferOptions.defaults().withTransport(transport());
  }

  @BeforeEach
  void writeFiles() {
    first = TestFiles.write(folder.resolve("first"), 1, LENGTH);
    second = TestFiles.write(folder.resolve("second"), 2, LENGTH);
  }

  @AfterEach
  void closeSession() {
    gantry.close();
  }

  private static ReadInto part(Path file, long offset, Memory memory) {
    Extent extent = new Extent(file, offset, memory.length());
    return new ReadInto(extent.toString(), extent, memory);
  }

  @ParameterizedTest
  @EnumSource(CachePolicy.class)
  void onlyTheWantedBytesChangeWhereverTheyLie(CachePolicy policy) {
    for (long seed = 1; seed <= 12; seed++) {
      Random random = new Random(seed);
      int room = 4 << 20;
      try (Block block = allocate(room, BEFORE)) {
        byte[] expected = new byte[room];
        Arrays.fill(expected, BEFORE);
        List<ReadInto> parts = new ArrayList<>();
        for (int at = random.nextInt(5000); at < room; ) {
          int length = Math.min(room - at, lengthOf(random));
          Path file = random.nextBoolean() ? first : second;
          int offset = random.nextInt(LENGTH - length + 1);
          parts.add(part(file, offset, block.memory().slice(at, length)));
          byte[] bytes = TestFiles.expected(new Extent(file, offset, length));
          System.arraycopy(bytes, 0, expected, at, length);
          at += length + (random.nextBoolean() ? 0 : random.nextInt(9000));
        }
        PlanLimits limits =
            new PlanLimits(4096L << random.nextInt(9), random.nextInt(20_000), 1 << 20);
        TransferReport report =
            gantry.read(
                parts,
                options()
                    .withCachePolicy(policy)
                    .withLimits(limits)
                    .withThreads(1 + random.nextInt(4)));
        assertThat(Arrays.mismatch(block.bytes(), expected)).as("seed %d", seed).isEqualTo(-1);
        assertThat(report.bytes()).isPositive();
      }
    }
  }

  /// After 2,000 small copies to a device, a kernel does them, up to 170 at a time.
  @Test
  void thousandsOfSmallPartsComeInSomeLoads() {
    Random random = new Random(5);
    int room = 12 << 20;
    try (Block block = allocate(room, BEFORE)) {
      for (int load = 0; load < 2; load++) {
        byte[] expected = block.bytes();
        List<ReadInto> parts = new ArrayList<>();
        for (int at = load, length; at + (300 << 10) < room; at += length + random.nextInt(40)) {
          length =
              parts.size() % 300 == 0
                  ? (256 << 10) + parts.size() % 7 - 3
                  : 1 + random.nextInt(parts.size() % 20 == 0 ? 40_000 : 5000);
          int offset = random.nextInt(LENGTH - length + 1);
          parts.add(part(first, offset, block.memory().slice(at, length)));
          byte[] bytes = TestFiles.expected(new Extent(first, offset, length));
          System.arraycopy(bytes, 0, expected, at, length);
        }
        assertThat(parts).hasSizeGreaterThan(2000);
        gantry.read(parts, options());
        assertThat(Arrays.mismatch(block.bytes(), expected)).as("load %d", load).isEqualTo(-1);
      }
    }
  }

  private static int lengthOf(Random random) {
    return switch (random.nextInt(4)) {
      case 0 -> random.nextInt(20);
      case 1 -> 1 + random.nextInt(6000);
      case 2 -> 4096 * (1 + random.nextInt(20));
      default -> 1 + random.nextInt(1_500_000);
    };
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 512, 4096, 4097})
  void wholeFilesComeAtAnyPhase(int phase) {
    try (Block block = allocate(LENGTH + 8192, BEFORE)) {
      gantry.read(
          List.of(part(first, 0, block.memory().slice(phase, LENGTH))),
          options().withCachePolicy(CachePolicy.DIRECT));
      byte[] found = block.bytes();
      assertThat(Arrays.copyOfRange(found, phase, phase + LENGTH))
          .isEqualTo(TestFiles.bytes(1, LENGTH));
      assertThat(found[phase + LENGTH]).isEqualTo(BEFORE);
      assertThat(phase == 0 || found[phase - 1] == BEFORE).isTrue();
    }
  }

  /// Checks remote files. Only kinds that may choose their transport do so, because cuFile reads
  /// local files only.
  void checkRemoteFiles() {
    byte[] bytes = TestFiles.bytes(1, LENGTH);
    try (RangeServer server = new RangeServer();
        Block block = allocate(LENGTH, BEFORE)) {
      Location remote = server.put("remote", bytes);
      Extent extent = new Extent(remote, 77, 2_000_000);
      List<ReadInto> parts =
          List.of(new ReadInto("far", extent, block.memory().slice(1_001, extent.length())));
      gantry.read(parts, options());
      byte[] found = block.bytes();
      assertThat(Arrays.copyOfRange(found, 1_001, 2_001_001))
          .isEqualTo(Arrays.copyOfRange(bytes, 77, 2_000_077));
      assertThat(List.of(found[1_000], found[2_001_001])).containsOnly(BEFORE);

      server.answerAll(RangeServer.Answer.NOT_FOUND);
      assertThatThrownBy(() -> gantry.read(parts, options()))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("remote");
    }
  }

  @Test
  void oneExtentGoesToSeveralPlaces() {
    try (Block block = allocate(30_000, BEFORE)) {
      gantry.read(
          List.of(
              part(first, 100, block.memory().slice(0, 10_000)),
              part(first, 100, block.memory().slice(10_000, 10_000)),
              part(first, 5_000, block.memory().slice(20_000, 10_000))),
          options());
      byte[] bytes = TestFiles.bytes(1, LENGTH);
      assertThat(Arrays.copyOfRange(block.bytes(), 10_000, 20_000))
          .isEqualTo(Arrays.copyOf(block.bytes(), 10_000))
          .isEqualTo(Arrays.copyOfRange(bytes, 100, 10_100));
      assertThat(Arrays.copyOfRange(block.bytes(), 20_000, 30_000))
          .isEqualTo(Arrays.copyOfRange(bytes, 5_000, 15_000));
    }
  }

  @Test
  void mistakesAreSaidBeforeAnyByteChanges() {
    try (Block block = allocate(10_000, BEFORE)) {
      Memory memory = block.memory();
      Extent extent = new Extent(first, 0, 5_000);
      assertThatThrownBy(() -> gantry.read(List.of(new ReadInto("w", extent, memory)), options()))
          .isInstanceOf(MisuseException.class)
          .hasMessage("w has 5000 bytes, and the memory for it 10000");
      assertThatThrownBy(() ->
              gantry.read(
                  List.of(
                      new ReadInto("w", extent, memory.slice(0, 5_000)),
                      new ReadInto("v", extent, memory.slice(4_999, 5_000))),
                  options()))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the memory for w overlaps that for v");
      assertThatThrownBy(() -> gantry.read(List.of(part(first, LENGTH - 9_999, memory)), options()))
          .isExactlyInstanceOf(TransferException.class)
          .hasMessageContaining("1 bytes");
      assertThatThrownBy(
              () -> gantry.read(List.of(part(folder.resolve("none"), 0, memory)), options()))
          .isExactlyInstanceOf(TransferException.class)
          .hasMessageContaining("ENOENT");
      assertThat(block.bytes()).containsOnly(BEFORE);
    }
  }

  @Test
  void aFailureSaysWhatIsComplete() {
    try (Block block = allocate(2 * LENGTH, BEFORE)) {
      List<ReadInto> parts =
          List.of(
              new ReadInto("a", new Extent(first, 0, LENGTH), block.memory().slice(0, LENGTH)),
              new ReadInto(
                  "b", new Extent(second, 0, LENGTH), block.memory().slice(LENGTH, LENGTH)));
      // Each file has three megabytes, read in requests of one megabyte, so the fifth request is
      // for the file of b.
      calls.from(
          FaultyFileCalls.Function.PREAD, failingRead(), new FaultyFileCalls.Fails(Errno.EIO));
      TransferException.IncompleteRead failed =
          catchThrowableOfType(
              TransferException.IncompleteRead.class,
              () ->
                  gantry.read(
                      parts,
                      options()
                          .withLimits(PlanLimits.DEFAULT.withRequestBytes(1 << 20))
                          .withCachePolicy(CachePolicy.BUFFERED)
                          .withThreads(1)));
      assertThat(failed.complete()).containsExactly("a");
      assertThat(failed.failure()).isInstanceOf(Failure.Errno.class);
      assertThat(failed)
          .hasMessageContaining("1 of 2 are complete (a), the others may be partly overwritten")
          .hasMessageContaining("EIO");
      assertThat(Arrays.copyOf(block.bytes(), LENGTH)).isEqualTo(TestFiles.bytes(1, LENGTH));
    }
  }

  /// Returns the number of the read that fails: the second request for the second file.
  int failingRead() {
    return 5;
  }

  @Test
  void aCancelledReadSaysSo() {
    Cancellation cancellation = new Cancellation();
    try (Block block = allocate(LENGTH, BEFORE)) {
      TransferOptions options = options().withCancellation(cancellation);
      cancellation.cancel();
      TransferException.IncompleteRead failed =
          catchThrowableOfType(
              TransferException.IncompleteRead.class,
              () -> gantry.read(List.of(part(first, 0, block.memory())), options));
      assertThat(failed.failure()).isEqualTo(new Failure.Cancelled());
      assertThat(failed.complete()).isEmpty();
    }
  }

  @Test
  void nothingIsReadForNothing() {
    assertThat(gantry.read(List.of(), options()).bytes()).isZero();
    try (Block block = allocate(1, BEFORE)) {
      assertThat(
              gantry.read(List.of(part(first, 5, block.memory().slice(0, 0))), options()).bytes())
          .isZero();
    }
  }

  static Device.Cuda gpu() {
    return new Device.Cuda(0);
  }
}
