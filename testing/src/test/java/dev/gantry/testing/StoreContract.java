// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// The rules for every [Store]. A test of a store extends this class.
@ExtendWith(NoLeaks.class)
public abstract class StoreContract {
  private static final int LENGTH = 3_000_017;
  private static final long SEED = 20261122;
  private static final int GUARD_BYTES = 64;

  /// Returns the store under test.
  protected abstract Store store();

  /// Makes a file of the store, and replaces any file of the name.
  protected abstract Location put(String name, byte[] bytes) throws IOException;

  /// Returns the location of a file that the store does not have.
  protected abstract Location missing();

  private StoredFile open(Location file) {
    return store().open(file, CachePolicy.BY_RESIDENCY);
  }

  /// One read, whose target has bytes around it that must not change.
  private static final class Read extends ReadRequest {
    private final MemorySegment memory;
    private final CompletableFuture<byte[]> done = new CompletableFuture<>();

    Read(Arena arena, long offset, long length) {
      this(arena.allocate(length + 2 * GUARD_BYTES), offset);
    }

    private Read(MemorySegment memory, long offset) {
      super(
          memory.asSlice(GUARD_BYTES, memory.byteSize() - 2 * GUARD_BYTES),
          offset,
          new Cancellation());
      this.memory = memory;
    }

    @Override
    public void completed() {
      assertThat(done.complete(target().toArray(ValueLayout.JAVA_BYTE))).as("ends once").isTrue();
    }

    @Override
    public void failed(Throwable reason) {
      assertThat(done.completeExceptionally(reason)).as("ends once").isTrue();
    }

    byte[] await() {
      byte[] bytes = done.orTimeout(60, TimeUnit.SECONDS).join();
      assertThat(memory.asSlice(0, GUARD_BYTES).mismatch(zeros())).isEqualTo(-1);
      assertThat(memory.asSlice(GUARD_BYTES + target().byteSize()).mismatch(zeros())).isEqualTo(-1);
      return bytes;
    }

    private static MemorySegment zeros() {
      return MemorySegment.ofArray(new byte[GUARD_BYTES]);
    }
  }

  private static byte[] read(StoredFile file, long offset, long length) {
    try (Arena arena = Arena.ofShared()) {
      Read read = new Read(arena, offset, length);
      file.read(read);
      return read.await();
    }
  }

  @Test
  public void everyByteArrives() throws IOException {
    byte[] bytes = TestFiles.bytes(SEED, LENGTH);
    try (StoredFile file = open(put("whole", bytes))) {
      assertThat(file.size()).isEqualTo(LENGTH);
      assertThat(file.requestsAtOnce()).isPositive();
      assertThat(Arrays.equals(read(file, 0, LENGTH), bytes)).isTrue();
      assertThat(read(file, LENGTH - 1, 1)).containsExactly(bytes[LENGTH - 1]);
      assertThat(read(file, LENGTH, 0)).isEmpty();
    }
  }

  @Test
  public void anEmptyFileHasNoBytes() throws IOException {
    try (StoredFile file = open(put("empty", new byte[0]))) {
      assertThat(file.size()).isZero();
      assertThat(read(file, 0, 0)).isEmpty();
    }
  }

  @Test
  public void aHundredReadsAreUnderWayAtOnce() throws IOException {
    byte[] bytes = TestFiles.bytes(SEED, LENGTH);
    Random random = new Random(SEED);
    try (Arena arena = Arena.ofShared();
        StoredFile file = open(put("many", bytes))) {
      List<Read> reads = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        int length = random.nextInt(50_000);
        Read read = new Read(arena, random.nextInt(LENGTH - length), length);
        reads.add(read);
        file.read(read);
      }
      for (Read read : reads) {
        int from = (int) read.offset();
        byte[] expected = Arrays.copyOfRange(bytes, from, from + (int) read.target().byteSize());
        assertThat(Arrays.equals(read.await(), expected)).as("offset %s", from).isTrue();
      }
    }
  }

  @Test
  public void theIdentityIsThatOfTheBytes() throws IOException {
    Location name = put("identity", TestFiles.bytes(1, 1000));
    Object first = identity(name);
    assertThat(identity(name)).isEqualTo(first);
    assertThat(identity(put("another", TestFiles.bytes(2, 1000)))).isNotEqualTo(first);
    assertThat(identity(put("identity", TestFiles.bytes(3, 1000)))).isNotEqualTo(first);
  }

  private Object identity(Location name) {
    try (StoredFile file = open(name)) {
      return file.identity();
    }
  }

  /// The read gets the bytes of the file that was opened, or fails.
  @Test
  public void aFileThatGivesWayToAnotherIsNeverMixedWithIt() throws IOException {
    byte[] bytes = TestFiles.bytes(1, LENGTH);
    try (StoredFile file = open(put("replaced", bytes))) {
      assertThat(read(file, 0, 10)).isEqualTo(Arrays.copyOf(bytes, 10));
      Location _ = put("replaced", TestFiles.bytes(2, LENGTH));
      byte[] later;
      try {
        later = read(file, 0, LENGTH);
      } catch (CompletionException e) {
        assertThat(e).cause().isInstanceOf(TransferException.class);
        return;
      }
      assertThat(Arrays.equals(later, bytes)).isTrue();
    }
  }

  @Test
  public void aFileThatIsNotThereIsAnError() {
    Location missing = missing();
    assertThatThrownBy(() -> open(missing))
        .isInstanceOfSatisfying(
            TransferException.class, failure -> assertThat(failure.isNotFound()).isTrue())
        .hasMessageContaining(missing.toString());
  }

  /// The read must end, by its success or by a failure.
  @Test
  public void aCancelledReadEnds() throws IOException {
    byte[] bytes = TestFiles.bytes(SEED, LENGTH);
    try (Arena arena = Arena.ofShared();
        StoredFile file = open(put("cancelled", bytes))) {
      Read before = new Read(arena, 0, LENGTH);
      before.cancellation().cancel();
      file.read(before);
      Read later = new Read(arena, 0, LENGTH);
      file.read(later);
      later.cancellation().cancel();
      for (Read read : List.of(before, later)) {
        try {
          assertThat(Arrays.equals(read.await(), bytes)).isTrue();
        } catch (CompletionException e) {
          assertThat(e).cause().isInstanceOf(TransferException.class);
        }
      }
    }
  }
}
