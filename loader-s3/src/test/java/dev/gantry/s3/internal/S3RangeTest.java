// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.objects.ObjectName;
import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.s3.testing.FaultProxy;
import dev.gantry.s3.testing.FaultProxy.Answer;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/// Tests a single request by the CRT's client, without a load around it.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class S3RangeTest {
  private static final int LENGTH = 10_000;

  private final S3Server server = S3Server.inMemory();
  private final FaultProxy proxy = new FaultProxy(server.endpoint());
  private final Location file = server.put("weights.bin", TestFiles.bytes(7, LENGTH));
  private final Arena arena = Arena.ofShared();
  private final MemorySegment target = arena.allocate(LENGTH);
  private final Cancellation cancellation = new Cancellation();
  private final CompletableFuture<Void> end = new CompletableFuture<>();
  private S3Clients clients;

  S3RangeTest() {
    server.pointAt(proxy.endpoint());
    clients =
        S3Clients.open(
            new S3Settings(new RetryLimits(4, Duration.ofMillis(10), Duration.ofMinutes(5))));
  }

  @AfterEach
  void close() {
    clients.close();
    arena.close();
    proxy.close();
    server.close();
  }

  private S3Range range() {
    return range(end);
  }

  private S3Range range(CompletableFuture<Void> end) {
    ObjectName name = ObjectName.ofObject(file);
    ReadRequest request =
        new ReadRequest(target, 0, cancellation) {
          @Override
          public void completed() {
            boolean _ = end.complete(null);
          }

          @Override
          public void failed(Throwable reason) {
            boolean _ = end.completeExceptionally(reason);
          }
        };
    return new S3Range(clients, file, clients.url(name), clients.head(file, name).eTag(), request);
  }

  /// A piece that comes twice must not count as the missing piece.
  @Test
  void piecesInAnotherOrderAreRefused() {
    S3Request.Sent attempt = range().newAttempt();
    ByteBuffer half = ByteBuffer.allocateDirect(LENGTH / 2);
    assertThat(attempt.onResponseBody(half, 0, LENGTH / 2)).isZero();
    assertThat(attempt.onResponseBody(half, 0, LENGTH / 2)).isZero();
    RemoteFault fault = attempt.fault();
    assertThat(fault).isNotNull();
    assertThat(fault.reason()).isEqualTo("the server sent 5000 bytes at offset 0");
  }

  /// The memory may belong to another load by then.
  @Test
  void bytesThatComeAfterAStopAreDropped() {
    S3Request.Sent attempt = range().newAttempt();
    ByteBuffer half = ByteBuffer.allocateDirect(LENGTH / 2).put(0, (byte) 1);
    attempt.stop();
    assertThat(attempt.onResponseBody(half, 0, LENGTH / 2)).isZero();
    assertThat(target.get(ValueLayout.JAVA_BYTE, 0)).isZero();
  }

  /// Without a bound, a load from such a server would never end.
  @Test
  void aServerThatSendsTooLittleIsNotWaitedFor() {
    clients.close();
    clients =
        S3Clients.open(
            new S3Settings(new RetryLimits(1, Duration.ofMillis(10), Duration.ofSeconds(2))));
    proxy.answer(number -> number == 0 ? Answer.STALLED : Answer.DRIPS);
    CompletableFuture<Void> other = new CompletableFuture<>();
    range(end).start();
    range(other).start();
    try {
      for (CompletableFuture<Void> each : List.of(end, other)) {
        assertThatThrownBy(() -> each.get(30, TimeUnit.SECONDS))
            .isInstanceOf(ExecutionException.class)
            .cause()
            .hasMessageContaining("AWS_ERROR_HTTP_CHANNEL_THROUGHPUT_FAILURE");
      }
    } finally {
      // Closing the clients waits for requests that are under way.
      cancellation.cancel();
    }
  }

  /// Closing frees the clients' credentials and keys, which the CRT's threads use while a request
  /// is under way.
  @Test
  void closingWaitsForARequestThatIsUnderWay() throws Exception {
    proxy.answer(_ -> Answer.STALLED);
    range().start();
    Latches.awaitThat(() -> proxy.ranges() > 0);
    CompletableFuture<Void> closing = CompletableFuture.runAsync(clients::close);
    assertThatThrownBy(() -> closing.get(300, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    cancellation.cancel();
    assertThatThrownBy(end::get)
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOfSatisfying(
            TransferException.class,
            e -> assertThat(e.failure()).isEqualTo(new Failure.Cancelled()));
    Void _ = closing.get(30, TimeUnit.SECONDS);
  }
}
