// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.testing.schedules.Scenario;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;

/// A saver uploads a checkpoint while another saver takes over the folder in the store and removes
/// unfinished uploads. A checkpoint with a manifest in the store has all of its files, and an
/// upload that was reported as done stays.
final class UploadScenario implements Scenario {
  private static final GantrySession SESSION = GantrySession.shared();

  private final Location remote = Location.of("memory://" + UUID.randomUUID() + "/run");
  private final Path folder = Files.createTempDirectory("uploads");
  private final StoreFolder other = new StoreFolder(SESSION, folder.resolve("b"));
  private final CheckpointFolder checkpoint;
  private final RemoteFolder first;
  private final boolean[] uploaded = new boolean[1];

  UploadScenario() throws IOException {
    Path local = folder.resolve("a");
    try (CheckpointStore store = TestCheckpoints.open(SESSION, local, Retention.ALL)) {
      var _ = store.save(TestCheckpoints.unsaved(1), TestCheckpoints.options());
    }
    checkpoint = CheckpointStore.list(SESSION, local).latest().orElseThrow();
    other.create();
    first =
        RemoteFolder.open(
            SESSION,
            remote,
            new StoreFolder(SESSION, local),
            List.of(checkpoint),
            Retention.ALL,
            "aaaaaaaaaaaaaaaa");
  }

  @Override
  public boolean waitsForOthers() {
    return true;
  }

  @Override
  public List<Work> threads() {
    return List.of(
        this::upload,
        () -> {
          var _ =
              RemoteFolder.open(
                  SESSION, remote, other, List.of(), Retention.ALL, "bbbbbbbbbbbbbbbb");
        });
  }

  private void upload() {
    try {
      first.upload(checkpoint, Retention.ALL);
      uploaded[0] = true;
    } catch (TransferException e) {
      assertThat(e).hasMessageContaining("another saver has taken this folder");
    }
  }

  @Override
  public void check() throws IOException {
    CheckpointListing found = RemoteScan.of(SESSION, (Location.Remote) remote).listing();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
    assertThat(found.damaged()).isEmpty();
    if (uploaded[0]) {
      assertThat(found.saves()).hasSize(1);
    }
  }
}
