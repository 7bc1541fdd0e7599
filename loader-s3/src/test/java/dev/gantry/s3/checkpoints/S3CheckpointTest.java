// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.checkpoints;

import static dev.gantry.s3.checkpoints.UploadingChild.TWO;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.s3.internal.S3Store;
import dev.gantry.s3.testing.FaultProxy;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.model.CreateMultipartUploadResponse;
import software.amazon.awssdk.services.s3.model.MultipartUpload;

/// Tests checkpoints that are copied to S3 by processes that are killed.
@ExtendWith(NoLeaks.class)
class S3CheckpointTest {
  /// The number of kills. `-Dgantry.kills=100` takes some minutes; the test that kills before
  /// calls then does so before every call instead of before every seventh.
  private static final int KILLS = Integer.getInteger("gantry.kills", 2);

  private static final long SEED = Long.getLong("gantry.seed", System.nanoTime());

  @TempDir private Path folder;
  private final S3Server server = S3Server.inMemory();
  private final GantrySession session = GantrySession.open();
  private final Location remote = S3Server.location("runs/seven");

  @AfterEach
  void close() {
    session.close();
    GantrySession.shared().freeIdle();
    server.close();
  }

  private CheckpointStore open(String name) {
    return CheckpointStore.open(
        session,
        folder.resolve(name),
        TWO,
        Checkpoints.FILE_BYTES,
        Optional.of(new CheckpointStore.Remote(remote, TWO)));
  }

  private CheckpointFolder latest(String name) {
    return CheckpointStore.list(GantrySession.shared(), folder.resolve(name))
        .latest()
        .orElseThrow();
  }

  /// Returns the step of the checkpoint that a machine with an empty disk restores from S3.
  private long restorable(String name) {
    try (CheckpointStore store = open(name)) {
      assertThat(uploadsUnderWay()).isEmpty();
      store.fetchLatest(false);
      CheckpointFolder found = latest(name);
      Checkpoints.requireWhole(session, found);
      return found.step();
    }
  }

  private static List<MultipartUpload> uploadsUnderWay() {
    try (S3AsyncClient client = client()) {
      return client.listMultipartUploads(list -> list.bucket(S3Server.BUCKET)).join().uploads();
    }
  }

  private static S3AsyncClient client() {
    return S3AsyncClient.crtBuilder().forcePathStyle(true).build();
  }

  @Test
  void aCheckpointComesBackOnAnotherMachine() {
    try (CheckpointStore store = open("a")) {
      for (long step = 1; step <= 3; step++) {
        var _ = store.save(Checkpoints.of(step), WriteOptions.defaults());
        store.awaitUploads();
      }
    }
    try (S3Store s3 = new S3Store()) {
      assertThat(s3.below(remote))
          .extracting(entry -> entry.name().replaceFirst("(gantry-step-[0-9]+|).*", "$1"))
          .containsOnly("", "gantry-step-2", "gantry-step-3");
    }
    assertThat(restorable("b")).isEqualTo(3);
  }

  @Test
  void onlyUploadsOfCheckpointsAreEnded() {
    try (S3AsyncClient client = client()) {
      for (String key : List.of("runs/seven/gantry-step-9/manifest.json", "runs/seven/mine", "x")) {
        CreateMultipartUploadResponse _ =
            client.createMultipartUpload(begin -> begin.bucket(S3Server.BUCKET).key(key)).join();
      }
    }
    open("a").close();
    assertThat(uploadsUnderWay())
        .extracting(MultipartUpload::key)
        .containsExactlyInAnyOrder("runs/seven/mine", "x");
  }

  @Test
  void anUploadThatIsRefusedLeavesTheDiskAsItIs() {
    try (FaultProxy proxy = new FaultProxy(server.endpoint())) {
      server.pointAt(proxy.endpoint());
      try (CheckpointStore store = open("a")) {
        proxy.answerUploads(_ -> FaultProxy.Answer.EXPIRED);
        var _ = store.save(Checkpoints.of(1), WriteOptions.defaults());
        assertThatThrownBy(store::awaitUploads)
            .hasMessageContaining("the credentials have expired; renew them")
            .message()
            .hasLineCount(1);
        assertThat(latest("a").step()).isEqualTo(1);
        proxy.answerUploads(
            number -> number < 3 ? FaultProxy.Answer.SLOW_DOWN : FaultProxy.Answer.RIGHT);
        var _ = store.save(Checkpoints.of(2), WriteOptions.defaults());
        store.awaitUploads();
      }
      try (CheckpointStore store = open("b")) {
        store.fetchLatest(false);
        store.fetch(1);
        assertThat(CheckpointStore.list(GantrySession.shared(), folder.resolve("b")).checkpoints())
            .extracting(CheckpointFolder::step)
            .containsExactly(1L, 2L);
      }
    }
  }

  @Test
  void aBucketThatIsMissingIsOneError() {
    assertThatThrownBy(() ->
            CheckpointStore.open(
                session,
                folder.resolve("a"),
                TWO,
                1 << 20,
                Optional.of(new CheckpointStore.Remote(Location.of("s3://no-such-bucket/f"), TWO))))
        .hasMessageContaining("s3://no-such-bucket/f/gantry-saver")
        .hasMessageContaining("NoSuchBucket");
  }

  @Test
  void killedBeforeItsCalls() {
    int stride = KILLS < 100 ? 7 : 1;
    long done = 0;
    for (int call = Math.floorMod(SEED, stride); ; call += stride) {
      long step = call + 1L;
      boolean whole;
      try (UploadingChild child = UploadingChild.start(folder.resolve("a"), remote, step, call)) {
        whole = child.line().isPresent() && child.line().equals(Optional.of(UploadingChild.DONE));
      }
      done = requireOldOrNew(done, step, whole, "call " + call);
      if (whole) {
        break;
      }
    }
    assertThat(done).as("one a call: uploads, ends and removals").isGreaterThan(6);
  }

  @Test
  void killedAtAnyTime() {
    System.out.println("S3CheckpointTest: -Dgantry.kills=" + KILLS + " -Dgantry.seed=" + SEED);
    Random random = new Random(SEED);
    long done = 0;
    List<Long> found = new ArrayList<>();
    for (int kill = 0; kill < KILLS; kill++) {
      long step = kill + 1L;
      try (UploadingChild child =
          UploadingChild.start(folder.resolve("a"), remote, step, Integer.MAX_VALUE)) {
        assertThat(child.line()).contains(UploadingChild.SAVED);
        LockSupport.parkNanos(random.nextLong(800_000_000L));
      }
      done = requireOldOrNew(done, step, false, "seed " + SEED + ", kill " + kill);
      found.add(done);
    }
    System.out.println("S3CheckpointTest: found after each kill: " + found);
  }

  /// Requires that S3 has the checkpoint from before a kill or a later one.
  ///
  /// @param before the last step that was restored; 0 if there was none
  /// @param whole whether the process has said that the checkpoint `step` is in S3
  /// @return the step that is restored now; 0 if there is none
  private long requireOldOrNew(long before, long step, boolean whole, String where) {
    boolean any;
    try (S3Store s3 = new S3Store()) {
      any = s3.below(remote).stream().anyMatch(entry -> entry.name().endsWith("/manifest.json"));
    }
    if (!any) {
      assertThat(before).as(where).isZero();
      assertThat(whole).as(where).isFalse();
      return 0;
    }
    long found = restorable("at " + where);
    if (whole) {
      assertThat(found).as(where).isEqualTo(step);
    } else {
      assertThat(found).as(where).isBetween(before, step);
    }
    return found;
  }
}
