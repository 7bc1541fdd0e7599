// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.RangeWrite.Range;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Writes in place: exactly the given ranges change, at any offset of file and memory.
@ExtendWith(NoLeaks.class)
class RangeWriteTest {
  private static final int LENGTH = 1_000_003;

  @TempDir Path folder;
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final GantrySession gantry = GantrySession.open(calls);

  @AfterEach
  void close() {
    gantry.close();
  }

  /// Returns memory with these bytes; here it is host memory.
  Memory memory(byte[] bytes, Arena arena, Random random) {
    if (random.nextInt(4) == 0) {
      return new Memory.OnHost(MemorySegment.ofArray(bytes));
    }
    int phase = random.nextBoolean() ? 0 : random.nextInt(4096);
    MemorySegment segment = arena.allocate(bytes.length + phase, 4096).asSlice(phase);
    segment.copyFrom(MemorySegment.ofArray(bytes));
    return new Memory.OnHost(segment);
  }

  @Test
  void exactlyTheRangesChange() throws IOException {
    for (int seed = 1; seed <= 20; seed++) {
      Random random = new Random(seed);
      Path file = TestFiles.write(folder.resolve("file" + seed), seed, LENGTH);
      byte[] expected = Arrays.copyOf(Files.readAllBytes(file), LENGTH + 50_000);
      int end = LENGTH;
      try (Arena arena = Arena.ofShared()) {
        List<Range> ranges = new ArrayList<>();
        for (int at = random.nextInt(9000); at < LENGTH; at += random.nextInt(9000)) {
          byte[] bytes = new byte[random.nextInt(random.nextBoolean() ? 50_000 : 50)];
          random.nextBytes(bytes);
          ranges.add(new Range(at, memory(bytes, arena, random)));
          System.arraycopy(bytes, 0, expected, at, bytes.length);
          at += bytes.length;
          end = bytes.length == 0 ? end : Math.max(end, at);
        }
        Collections.shuffle(ranges, random);
        gantry.write(
            file,
            ranges,
            WriteOptions.defaults()
                .withRequestBytes(4096L << random.nextInt(4))
                .withPageCache(random.nextBoolean()));
      }
      assertThat(Arrays.mismatch(Files.readAllBytes(file), Arrays.copyOf(expected, end)))
          .as("seed %d", seed)
          .isEqualTo(-1);
    }
  }

  /// A device's bytes come to the host in steps of 8 MiB.
  @Test
  void aRequestMayBeLongerThanAStepOfADevice() throws IOException {
    Path file = folder.resolve("long");
    byte[] bytes = TestFiles.bytes(7, (20 << 20) + 5);
    try (Arena arena = Arena.ofShared()) {
      gantry.write(
          file,
          List.of(new Range(0, memory(bytes, arena, new Random(1)))),
          WriteOptions.defaults().withRequestBytes(32L << 20));
    }
    assertThat(Arrays.mismatch(Files.readAllBytes(file), bytes)).isEqualTo(-1);
  }

  @Test
  void aFileThatIsNotThereIsCreated() throws IOException {
    Path file = folder.resolve("new");
    byte[] bytes = TestFiles.bytes(3, 10_000);
    gantry.write(
        file,
        List.of(new Range(5, new Memory.OnHost(MemorySegment.ofArray(bytes)))),
        WriteOptions.defaults());
    assertThat(Files.readAllBytes(file)).hasSize(10_005).endsWith(bytes).startsWith(0, 0, 0, 0, 0);
    assertThat(calls.count(FaultyFileCalls.Function.FSYNC)).as("file and folder").isEqualTo(2);
  }

  @Test
  void mistakesAreSaidBeforeAnythingIsWritten() {
    Path file = folder.resolve("none");
    Memory ten = new Memory.OnHost(MemorySegment.ofArray(new byte[10]));
    assertThatThrownBy(() ->
            gantry.write(
                file, List.of(new Range(0, ten), new Range(9, ten)), WriteOptions.defaults()))
        .isInstanceOf(MisuseException.class)
        .hasMessageEndingWith("two writes overlap at offset 9");
    Memory none = new Memory.OnHost(MemorySegment.ofArray(new byte[0]));
    List<Range> withNone = List.of(new Range(0, ten), new Range(2, none), new Range(9, ten));
    assertThatThrownBy(() -> gantry.write(file, withNone, WriteOptions.defaults()))
        .isInstanceOf(MisuseException.class)
        .hasMessageEndingWith("two writes overlap at offset 9");
    assertThatThrownBy(
            () -> gantry.write(file, List.of(new Range(-1, ten)), WriteOptions.defaults()))
        .isInstanceOf(MisuseException.class)
        .hasMessageEndingWith("2⁶³-1 at most (were -1 and 10)");
    Arena arena = Arena.ofShared();
    Memory closed = new Memory.OnHost(arena.allocate(10));
    arena.close();
    assertThatThrownBy(
            () -> gantry.write(file, List.of(new Range(0, closed)), WriteOptions.defaults()))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the memory for the write is closed");
    assertThat(file).doesNotExist();
  }

  @Test
  void aFailedWriteOrSynchronisationIsSaid() {
    Memory memory = new Memory.OnHost(MemorySegment.ofArray(new byte[100_000]));
    List<Range> ranges = List.of(new Range(0, memory));
    calls.at(FaultyFileCalls.Function.PWRITE, 1, new FaultyFileCalls.Fails(Errno.ENOSPC));
    assertThatThrownBy(() -> gantry.write(folder.resolve("file"), ranges, WriteOptions.defaults()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOSPC");
    Range last = new Range(Long.MAX_VALUE - memory.length(), memory);
    assertThatThrownBy(
            () -> gantry.write(folder.resolve("large"), List.of(last), WriteOptions.defaults()))
        .isInstanceOf(TransferException.class)
        .hasMessageStartingWith("pwrite failed");
    calls.at(FaultyFileCalls.Function.FSYNC, 1, new FaultyFileCalls.Fails(Errno.EIO));
    assertThatThrownBy(() -> gantry.write(folder.resolve("file"), ranges, WriteOptions.defaults()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("fsync");
  }

  /// Otherwise direct writes of whole blocks would change the new file, and writes of the bytes
  /// beside them the old file.
  @Test
  void aFileThatTakesTheNameDuringTheOpeningStaysAsItIs() throws IOException {
    Path file = TestFiles.write(folder.resolve("file"), 1, LENGTH);
    Path other = TestFiles.write(folder.resolve("other"), 2, LENGTH);
    calls.at(
        FaultyFileCalls.Function.OPEN,
        2,
        new FaultyFileCalls.After(() -> assertThat(Libc.INSTANCE.rename(other, file)).isZero()));
    try (Arena arena = Arena.ofShared()) {
      Range range = new Range(0, new Memory.OnHost(arena.allocate(8192, 4096)));
      gantry.write(file, List.of(range), WriteOptions.defaults().withPageCache(false));
    }
    assertThat(Arrays.mismatch(Files.readAllBytes(file), TestFiles.bytes(2, LENGTH))).isEqualTo(-1);
  }

  @Test
  void aPipeIsRefused() throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    try (Arena arena = Arena.ofShared()) {
      List<Range> ranges = List.of(new Range(0, new Memory.OnHost(arena.allocate(100))));
      assertThatThrownBy(() -> gantry.write(pipe, ranges, WriteOptions.defaults()))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("not-a-regular-file");
    }
  }
}
