// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cufile.BatchTransfers.Request;
import dev.gantry.core.internal.natives.CuFileHandle;
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
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// What batches owe their callers, whatever the library.
abstract class BatchTransfersContract extends CuFileRequests {
  static final int REQUESTS = 10_000;

  private BatchBudget budget;

  final BatchBudget budget() {
    if (budget == null) {
      budget = BatchBudget.of(cuFile);
    }
    return budget;
  }

  final BatchTransfers batches() {
    return new BatchTransfers(cuFile.batches().orElseThrow(AssertionError::new), budget(), context);
  }

  final Request read(CuFileHandle file, Landing landing) {
    return new Request(
        file,
        false,
        memory(),
        landing.slabOffset(),
        landing.fileOffset(),
        landing.length(),
        landing.length());
  }

  static void run(BatchTransfers batches, List<Request> requests) {
    AtomicInteger done = new AtomicInteger();
    batches.run(requests, () -> true, _ -> done.incrementAndGet());
    assertThat(done).hasValue(requests.size());
  }

  @Test
  void randomReadsArriveAndNothingElseIsWritten() throws IOException {
    CuFileHandle file = weights();
    BatchTransfers batches = batches();
    Random random = new Random(3);
    for (int done = 0; done < REQUESTS; ) {
      empty();
      List<Landing> landings = random(random, REQUESTS - done);
      run(batches, landings.stream().map(landing -> read(file, landing)).toList());
      assertHolds(landings);
      done += landings.size();
    }
  }

  @Test
  void randomWritesArrive() throws IOException {
    CuFileHandle source = weights();
    Path path = Files.write(folder.resolve("written"), new byte[0]);
    CuFileHandle file = handle(path);
    BatchTransfers batches = batches();
    Landing all = new Landing(0, 1_000_000, 0);
    run(batches, List.of(read(source, all)));
    byte[] expected = new byte[all.length()];
    List<Request> writes = new ArrayList<>();
    Random random = new Random(5);
    int at = 0;
    while (at < expected.length) {
      int length = Math.min(1 + random.nextInt(2000), expected.length - at);
      if (random.nextInt(4) > 0 || at + length == expected.length) {
        writes.add(new Request(file, true, memory(), at, at, length, length));
        System.arraycopy(bytes, at, expected, at, length);
      }
      at += length;
    }
    run(batches, writes);
    assertThat(Arrays.mismatch(Files.readAllBytes(path), expected)).isNegative();
  }

  @Test
  void severalThreadsShareTheBudget() throws Exception {
    readBySeveralThreads();
  }

  final void readBySeveralThreads() throws IOException, InterruptedException {
    CuFileHandle file = weights();
    BatchTransfers batches = batches();
    List<Landing> landings = random(new Random(8), 2000);
    ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
    List<Thread> threads = new ArrayList<>();
    int share = Math.ceilDiv(landings.size(), 8);
    for (int from = 0; from < landings.size(); from += share) {
      List<Request> requests =
          landings.subList(from, Math.min(from + share, landings.size())).stream()
              .map(landing -> read(file, landing))
              .toList();
      threads.add(
          Thread.ofPlatform()
              .start(() -> {
                try {
                  run(batches, requests);
                } catch (Throwable e) {
                  failures.add(e);
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    assertHolds(landings);
  }

  @Test
  void theEndOfTheFileIsAFailureOnlyIfMoreWasRequired() throws IOException {
    CuFileHandle file = weights();
    Request good = new Request(file, false, memory(), 0, FILE_BYTES - 100, 4096, 100);
    run(batches(), List.of(good));
    // What follows up to the request's length is undefined: NVIDIA's library writes there.
    assertThat(Arrays.equals(slabBytes(), 0, 100, bytes, FILE_BYTES - 100, FILE_BYTES)).isTrue();
    Request bad = new Request(file, false, memory(), 8192, FILE_BYTES - 100, 4096, 101);
    TransferException failure =
        catchThrowableOfType(TransferException.class, () -> run(batches(), List.of(good, bad)));
    assertThat(failure.failure()).isEqualTo(new Failure.EndOfFile(1));
    assertThat(failure).hasMessageContaining(file.file() + " offset " + FILE_BYTES);
  }

  @Test
  void hostMemoryIsServed() throws IOException {
    CuFileHandle file = weights();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(100_000, 4096);
      run(
          new BatchTransfers(cuFile.batches().orElseThrow(AssertionError::new), budget(), context),
          List.of(
              new Request(file, false, host, 0, 4096, 40_960, 40_960),
              new Request(file, false, host, 50_000, 77, 5001, 5001)));
      byte[] now = host.toArray(ValueLayout.JAVA_BYTE);
      assertThat(Arrays.equals(now, 0, 40_960, bytes, 4096, 4096 + 40_960)).isTrue();
      assertThat(Arrays.equals(now, 50_000, 55_001, bytes, 77, 77 + 5001)).isTrue();
    }
  }

  @Test
  void aCancellationEndsThemAndLeavesTheMemoryAlone() throws IOException {
    CuFileHandle file = weights();
    BatchTransfers batches = batches();
    Cancellation cancellation = new Cancellation();
    List<Request> requests =
        random(new Random(9), 2000).stream().map(landing -> read(file, landing)).toList();
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () ->
                batches.run(
                    requests, () -> !cancellation.isCancelled(), _ -> cancellation.cancel()));
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    empty();
    run(batches, List.of(requests.getFirst()));
    assertHolds(random(new Random(9), 1));
  }

  @Test
  void requestsOutsideTheirMemoryAreRefused() throws IOException {
    CuFileHandle file = weights();
    assertThatThrownBy(() -> new Request(file, false, memory(), SLAB_BYTES - 10, 0, 11, 11))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> new Request(file, false, memory(), 0, 0, 0, 0))
        .isInstanceOf(IndexOutOfBoundsException.class);
    Request before = new Request(file, false, memory(), 0, -4096, 10, 10);
    assertThatThrownBy(() -> run(batches(), List.of(before)))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> new Request(file, false, memory(), 0, 0, 10, 11))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> new BatchBudget(0, false)).isInstanceOf(MisuseException.class);
  }
}
