// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The rules for all snapshots, on every device: a snapshot keeps the bytes of its moment,
/// whatever happens to the originals, and its memory stays within the limits.
@ExtendWith(NoLeaks.class)
abstract class SnapshotContract {
  private static final int FILES = 3;
  private static final int PARTS = 40;

  @TempDir Path folder;
  final GantrySession gantry = GantrySession.open();
  private final List<byte[]> expected = new ArrayList<>();

  /// Returns memory with these bytes, which lasts until [#closeMemory].
  abstract Source source(byte[] bytes);

  /// Overwrites the memory of all sources.
  abstract void scribble();

  abstract void closeMemory();

  abstract SnapshotLimits limits();

  @AfterEach
  void close() {
    closeMemory();
    gantry.close();
  }

  /// Returns files with parts of odd sizes, some of them on the heap and some in another file.
  private List<NewFile> files() {
    Random random = new Random(5);
    Path other = TestFiles.write(folder.resolve("other"), 6, 100_000);
    List<NewFile> files = new ArrayList<>();
    for (int i = 0; i < FILES; i++) {
      List<Source> parts = new ArrayList<>();
      List<byte[]> contents = new ArrayList<>();
      for (int j = 0; j < PARTS; j++) {
        byte[] bytes = TestFiles.bytes(100 * i + j, random.nextInt(j % 3 == 0 ? 90_000 : 50));
        if (j % 10 == 5) {
          bytes = TestFiles.expected(new Extent(other, j, 1000));
          parts.add(new Source.FilePart(new Extent(other, j, 1000)));
        } else if (j % 10 == 0) {
          parts.add(new Memory.OnHost(MemorySegment.ofArray(bytes.clone())));
        } else {
          parts.add(source(bytes));
        }
        contents.add(bytes);
      }
      files.add(new NewFile(folder.resolve("file" + i), parts));
      expected.add(joined(contents));
    }
    return files;
  }

  private static byte[] joined(List<byte[]> parts) {
    byte[] all = new byte[parts.stream().mapToInt(part -> part.length).sum()];
    int at = 0;
    for (byte[] part : parts) {
      System.arraycopy(part, 0, all, at, part.length);
      at += part.length;
    }
    return all;
  }

  static Optional<Snapshot> take(SnapshotMemory memory, List<NewFile> files) {
    return memory.reserve(files).map(SnapshotMemory.Reserved::fill);
  }

  private void writeAndCompare(Snapshot snapshot) throws IOException {
    gantry.write(snapshot.files(), WriteOptions.defaults().withRequestBytes(64 << 10));
    for (int i = 0; i < FILES; i++) {
      byte[] written = Files.readAllBytes(folder.resolve("file" + i));
      assertThat(Arrays.mismatch(written, expected.get(i))).as("file %d", i).isEqualTo(-1);
    }
  }

  @Test
  void theBytesOfTheMomentAreWritten() throws IOException {
    try (SnapshotMemory memory = new SnapshotMemory(limits());
        Snapshot snapshot = take(memory, files()).orElseThrow()) {
      scribble();
      writeAndCompare(snapshot);
    }
  }

  @Test
  void memoryIsKeptFromOneToTheNext() throws IOException {
    List<NewFile> files = files();
    try (SnapshotMemory memory = new SnapshotMemory(limits())) {
      take(memory, files).orElseThrow().close();
      LiveResources.Snapshot held = LiveResources.snapshot();
      try (Snapshot again = take(memory, files).orElseThrow()) {
        assertThat(LiveResources.snapshot()).isEqualTo(held);
        writeAndCompare(again);
      }
      try (Snapshot one = take(memory, files).orElseThrow();
          Snapshot two = take(memory, files).orElseThrow()) {
        scribble();
        writeAndCompare(one);
        writeAndCompare(two);
      }
    }
  }

  @Test
  void preparedMemoryIsTheFirstSnapshots() throws IOException {
    List<NewFile> files = files();
    try (SnapshotMemory memory = new SnapshotMemory(limits())) {
      assertThat(memory.prepare(files)).isTrue();
      LiveResources.Snapshot held = LiveResources.snapshot();
      assertThat(memory.prepare(files)).isTrue();
      try (Snapshot snapshot = take(memory, files).orElseThrow()) {
        assertThat(LiveResources.snapshot()).isEqualTo(held);
        assertThat(memory.prepare(files)).isTrue();
        assertThat(LiveResources.snapshot()).isEqualTo(held);
        scribble();
        writeAndCompare(snapshot);
      }
    }
  }

  @Test
  void reservedMemoryCanBeGivenBack() {
    try (SnapshotMemory memory = new SnapshotMemory(limits())) {
      memory.reserve(files()).orElseThrow().giveBack();
    }
  }

  @Test
  void whatIsTooMuchIsNotTaken() {
    List<NewFile> files = files();
    LiveResources.Snapshot before = LiveResources.snapshot();
    try (SnapshotMemory memory = new SnapshotMemory(new SnapshotLimits(1000, 1000))) {
      assertThat(memory.prepare(files)).isFalse();
      assertThat(take(memory, files)).isEmpty();
      assertThat(LiveResources.snapshot()).isEqualTo(before);
    }
  }

  @Test
  void aSnapshotOutlivesTheMemorysClose() throws IOException {
    SnapshotMemory memory = new SnapshotMemory(limits());
    List<NewFile> files = files();
    try (Snapshot snapshot = take(memory, files).orElseThrow()) {
      memory.close();
      scribble();
      writeAndCompare(snapshot);
      assertThatThrownBy(() -> take(memory, files)).isInstanceOf(MisuseException.class);
    }
  }

  @Test
  void partsLieAsInTheFile() {
    try (SnapshotMemory memory = new SnapshotMemory(limits());
        Snapshot snapshot = take(memory, files()).orElseThrow()) {
      for (NewFile file : snapshot.files()) {
        long offset = 0;
        for (Source part : file.parts()) {
          if (part.length() > 0) {
            long at = offset % 4096;
            switch (part) {
              case Memory.OnHost(MemorySegment segment) ->
                  assertThat(segment.address() % 4096).isEqualTo(at);
              case Memory.OnDevice device -> assertThat(device.address() % 4096).isEqualTo(at);
              case Source.FilePart _ -> {}
            }
          }
          offset += part.length();
        }
      }
    }
  }

  /// Returns the device on which the snapshot keeps the memory of [#source].
  Device home(Snapshot snapshot) {
    Source part = snapshot.files().getFirst().parts().get(3);
    assertThat(part.length()).isPositive();
    return part instanceof Memory.OnDevice memory ? memory.device() : Device.HOST;
  }

  @Test
  void liesWhereTheLimitsSay() {
    try (SnapshotMemory memory = new SnapshotMemory(limits());
        Snapshot snapshot = take(memory, files()).orElseThrow()) {
      assertThat(home(snapshot)).isEqualTo(expectedHome());
    }
  }

  abstract Device expectedHome();

  /// This test is here because the class already has memory of each kind.
  @Test
  void checksumsAndCopiesOfAllKindsOfSources() {
    for (int length : new int[] {0, 1, 4096, (8 << 20) + 1, (24 << 20) - 5}) {
      byte[] bytes = TestFiles.bytes(length, length);
      Path file = TestFiles.write(folder.resolve("file"), length, length);
      requireRead(source(bytes), bytes);
      requireRead(new Source.FilePart(new Extent(file, 0, length)), bytes);
    }
  }

  private void requireRead(Source source, byte[] bytes) {
    MemorySegment expected = MemorySegment.ofArray(bytes);
    assertThat(gantry.checksum(source)).isEqualTo(Crc32c.of(expected));
    byte[] copy = new byte[bytes.length];
    gantry.copy(source, MemorySegment.ofArray(copy));
    assertThat(copy).isEqualTo(bytes);
    // Some checksum blocks end within a piece of a read, and some are longer than a piece.
    for (int block : new int[] {1_000_000, 8 << 20, (8 << 20) + 4096, 1 << 30}) {
      int[] sums = gantry.checksums(source, block);
      assertThat(sums).hasSize(Math.ceilDiv(bytes.length, block));
      for (int i = 0; i < sums.length; i++) {
        long from = (long) i * block;
        long length = Math.min(block, bytes.length - from);
        assertThat(sums[i]).isEqualTo(Crc32c.of(expected.asSlice(from, length)));
      }
    }
  }
}
