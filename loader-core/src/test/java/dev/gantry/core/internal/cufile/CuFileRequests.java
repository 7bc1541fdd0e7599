// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.TestFile;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Files, device memory and random requests for the contracts of batches and streams. A library that
/// hangs fails the test, not the run.
@ExtendWith(NoLeaks.class)
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class CuFileRequests {
  static final int FILE_BYTES = 4_000_003;
  static final int MAX_BYTES = 20_000;
  static final int SLAB_BYTES = 4 << 20;
  static final byte EMPTY = (byte) 0xEE;

  /// Where a read of the file lands.
  record Landing(long fileOffset, int length, int slabOffset) {}

  final CudaContext context = CudaContext.of(new Device.Cuda(0));
  CuFile cuFile;
  DeviceSlab slab;
  byte[] bytes;
  Path folder;
  private final List<AutoCloseable> open = new ArrayList<>();

  @BeforeEach
  void openAll(@TempDir Path temporary) throws IOException {
    folder = temporary;
    cuFile = CuFile.find().orElseThrow(AssertionError::new);
    cuFile.openDriver();
    open.add(cuFile::closeDriver);
    slab = DeviceSlab.allocate(context, SLAB_BYTES);
    open.add(slab::release);
    bytes = new byte[FILE_BYTES];
    new Random(17).nextBytes(bytes);
    empty();
  }

  @AfterEach
  void closeAll() throws Exception {
    List<AutoCloseable> closing = List.copyOf(open).reversed();
    open.clear();
    for (AutoCloseable one : closing) {
      one.close();
    }
  }

  /// Closed after the test, before what was opened earlier.
  <T extends AutoCloseable> T closing(T one) {
    open.add(one);
    return one;
  }

  CuFileHandle weights() throws IOException {
    return handle(Files.write(folder.resolve("weights"), bytes));
  }

  CuFileHandle handle(Path path) {
    TestFile file = closing(TestFile.open(path));
    try {
      return closing(cuFile.registerHandle(file.path(), file.descriptor()));
    } catch (TransferException e) {
      return abort("cuFile cannot have files here: " + e.getMessage());
    }
  }

  MemorySegment memory() {
    return slab.deviceSegment();
  }

  /// Fills the slab with [#EMPTY].
  final void empty() {
    try (var _ = context.enter()) {
      context.driver().fill(slab.address(), EMPTY, SLAB_BYTES, CudaDriver.Stream.DEFAULT);
      context.driver().synchronizeContext();
    }
  }

  byte[] slabBytes() {
    try (Arena arena = Arena.ofConfined();
        var _ = context.enter()) {
      MemorySegment host = arena.allocate(SLAB_BYTES);
      context.driver().copyToHost(host.address(), slab.address(), SLAB_BYTES);
      return host.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  /// Of what offsets and sizes are multiples.
  int alignment() {
    return 1;
  }

  final int aligned(int bytes) {
    return bytes / alignment() * alignment();
  }

  /// Reads of random places, one behind the other in the slab with gaps between.
  List<Landing> random(Random random, int most) {
    List<Landing> all = new ArrayList<>();
    int at = aligned(random.nextInt(100));
    while (all.size() < most) {
      int length = Math.max(alignment(), aligned(1 + random.nextInt(random.nextInt(1, MAX_BYTES))));
      if (at + length > SLAB_BYTES) {
        break;
      }
      all.add(new Landing(aligned(random.nextInt(FILE_BYTES - length + 1)), length, at));
      at += length + aligned(random.nextInt(100));
    }
    return all;
  }

  /// That the slab has these bytes and no others.
  void assertHolds(List<Landing> landings) {
    byte[] expected = new byte[SLAB_BYTES];
    Arrays.fill(expected, EMPTY);
    for (Landing one : landings) {
      System.arraycopy(bytes, (int) one.fileOffset(), expected, one.slabOffset(), one.length());
    }
    int difference = Arrays.mismatch(slabBytes(), expected);
    assertThat(difference).as("the first byte that differs").isNegative();
  }
}
