// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class HostMemoryReadTest extends MemoryReadContract {
  @Override
  Block allocate(int bytes, byte value) {
    Arena arena = Arena.ofShared();
    MemorySegment segment = arena.allocate(bytes, 4096).fill(value);
    return new Block() {
      @Override
      public Memory memory() {
        return new Memory.OnHost(segment);
      }

      @Override
      public byte[] bytes() {
        return segment.toArray(ValueLayout.JAVA_BYTE);
      }

      @Override
      public void close() {
        arena.close();
      }
    };
  }

  @Test
  void remoteFilesComeToo() {
    checkRemoteFiles();
  }

  @Test
  void arraysOfTheHeapAreFilled() {
    for (CachePolicy policy : CachePolicy.values()) {
      byte[] array = new byte[20_000];
      float[] floats = new float[2_000];
      gantry.read(
          List.of(
              new ReadInto(
                  "array",
                  new Extent(first, 77, 19_000),
                  new Memory.OnHost(MemorySegment.ofArray(array).asSlice(1_000))),
              new ReadInto(
                  "floats",
                  new Extent(first, 80_000, 8_000),
                  new Memory.OnHost(MemorySegment.ofArray(floats)))),
          TransferOptions.defaults().withCachePolicy(policy));
      byte[] bytes = TestFiles.bytes(1, 88_000);
      assertThat(Arrays.copyOfRange(array, 1_000, 20_000))
          .isEqualTo(Arrays.copyOfRange(bytes, 77, 19_077));
      assertThat(array[999]).isZero();
      assertThat(
              MemorySegment.ofArray(floats)
                  .mismatch(MemorySegment.ofArray(bytes).asSlice(80_000, 8_000)))
          .isEqualTo(-1);
    }
  }

  @Test
  void memoryThatCannotBeFilledIsRefused() {
    Extent extent = new Extent(first, 0, 100);
    MemorySegment readOnly = Arena.ofAuto().allocate(100).asReadOnly();
    assertThatThrownBy(() ->
            gantry.read(List.of(new ReadInto("w", extent, new Memory.OnHost(readOnly))), options()))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the memory for w is read-only");
    Arena arena = Arena.ofShared();
    MemorySegment closed = arena.allocate(100);
    arena.close();
    assertThatThrownBy(() ->
            gantry.read(List.of(new ReadInto("w", extent, new Memory.OnHost(closed))), options()))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the memory for w is closed");
    try (Arena confined = Arena.ofConfined()) {
      assertThatThrownBy(() -> new Memory.OnHost(confined.allocate(100)))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("confined to one thread");
    }
  }

  @Test
  void memoryOnBlocksIsReadPastThePageCacheWithoutACopy() {
    try (Block block = allocate(1 << 20, (byte) 0)) {
      int before = calls.count(FaultyFileCalls.Function.PREAD);
      gantry.read(
          List.of(new ReadInto("w", new Extent(first, 8192, 1 << 20), block.memory())),
          TransferOptions.defaults().withCachePolicy(CachePolicy.DIRECT));
      assertThat(calls.count(FaultyFileCalls.Function.PREAD) - before).isEqualTo(1);
    }
  }

  @Test
  void memoryOnBlocksGetsBytesFromAnyOffsetOfAFile() {
    Extent extent = new Extent(first, 77, 8192);
    for (CachePolicy policy : CachePolicy.values()) {
      try (Block block = allocate(8192, (byte) 0)) {
        TransferReport report =
            gantry.read(
                List.of(new ReadInto("w", extent, block.memory())),
                TransferOptions.defaults().withCachePolicy(policy));
        assertThat(block.bytes()).as("%s", policy).isEqualTo(TestFiles.expected(extent));
        assertThat(policy != CachePolicy.BUFFERED || report.directBytes() == 0).isTrue();
      }
    }
  }
}
