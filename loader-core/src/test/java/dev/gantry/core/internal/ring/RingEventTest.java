// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class RingEventTest {
  @TempDir Path folder;

  @Test
  void oneEventABatch() throws IOException {
    CountDownLatch asked = new CountDownLatch(3);
    Batches<Integer> source =
        new Batches<>(
            3,
            number -> {
              asked.countDown();
              return RingContract.number(number);
            });
    RingOptions options =
        new RingOptions(Device.HOST, 3, 4096, 4096, TransferOptions.defaults(), false);
    try (Recording recording = new Recording();
        GantrySession gantry = GantrySession.open();
        PrefetchRing<Integer> ring = gantry.ring(options, source)) {
      recording.enable("dev.gantry.RingBatch");
      recording.start();
      for (int i = 0; i < 3; i++) {
        RingContract.take(ring).close();
      }
      List<RecordedEvent> events = events(recording, "dev.gantry.RingBatch");
      assertThat(events).extracting(event -> event.getLong("number")).containsExactly(0L, 1L, 2L);
      assertThat(events).allMatch(event -> event.getLong("bytes") == 8);
      assertThat(events)
          .allMatch(event -> event.getDuration("prepared").compareTo(Duration.ZERO) > 0)
          .allMatch(event -> !event.getDuration("waited").isNegative());
      assertThat(events).allMatch(event -> event.getStackTrace() == null);
    }
    assertThat(asked.getCount()).isZero();
  }

  @Test
  void oneEventAWaitOfTheConsumer() throws IOException {
    CountDownLatch taken = new CountDownLatch(1);
    Batches<Integer> source =
        new Batches<>(
            1,
            number -> {
              awaitUninterruptibly(taken);
              return RingContract.number(number);
            });
    RingOptions options =
        new RingOptions(Device.HOST, 2, 4096, 4096, TransferOptions.defaults(), false);
    try (Recording recording = new Recording();
        GantrySession gantry = GantrySession.open();
        PrefetchRing<Integer> ring = gantry.ring(options, source)) {
      recording.enable("dev.gantry.Wait").withoutThreshold();
      recording.start();
      Thread consumer = Thread.ofPlatform().start(() -> RingContract.take(ring).close());
      Latches.awaitThat(() -> consumer.getState() == Thread.State.WAITING);
      taken.countDown();
      consumer.join();
      assertThat(events(recording, "dev.gantry.Wait"))
          .singleElement()
          .satisfies(wait -> assertThat(wait.getString("waitedFor")).isEqualTo("batch"));
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /// Ends the recording, and returns its events of one kind. A recording may also have events of
  /// the JVM.
  private List<RecordedEvent> events(Recording recording, String name) throws IOException {
    recording.stop();
    Path file = folder.resolve("recording.jfr");
    recording.dump(file);
    return RecordingFile.readAllEvents(file).stream()
        .filter(event -> event.getEventType().getName().equals(name))
        .toList();
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
