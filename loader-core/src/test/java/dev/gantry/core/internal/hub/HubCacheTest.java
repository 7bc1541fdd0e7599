// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.HubServer;
import dev.gantry.testing.HubServer.Request;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The files that the hub's cache has after each call, and the requests that are repeated.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class HubCacheTest {
  private static final String MODEL = "org/model";
  private static final int LENGTH = 5 * (1 << 20) + 17;
  private static final byte[] BYTES = TestFiles.bytes(7, LENGTH);

  @TempDir private Path folder;
  private final HubServer server = new HubServer(1 << 20);
  private final Map<String, String> settings = new HashMap<>();

  HubCacheTest() {
    server.put(MODEL, "config.json", "{}".getBytes(StandardCharsets.UTF_8));
    server.put(MODEL, "model.safetensors", BYTES);
  }

  @AfterEach
  void close() {
    server.close();
  }

  private GantrySession session() {
    settings.put("HF_ENDPOINT", server.endpoint());
    settings.put("HF_HOME", folder.toString());
    HubStore store = HubStore.with(Map.copyOf(settings), 1 << 10);
    return GantrySession.open(FileCalls.ofPlatform(), List.of(store));
  }

  private static Location weights() {
    return Location.of("hf://org/model/model.safetensors");
  }

  private static void checkLoad(GantrySession session, Location file, int from, int length) {
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(file, from, length), 8));
    try (Loaded loaded = session.load(wanted, Device.HOST, TransferOptions.defaults())) {
      byte[] found = TestFiles.bytes(loaded.regions().getFirst());
      assertThat(found).isEqualTo(Arrays.copyOfRange(BYTES, from, from + length));
    }
  }

  private Path repository() {
    return folder.resolve("hub/models--org--model");
  }

  private long bytesAsked() {
    return server.takeRequests().stream().filter(Request::large).mapToLong(Request::bytes).sum();
  }

  private List<Path> blobs() throws IOException {
    try (Stream<Path> files = Files.list(repository().resolve("blobs"))) {
      return files.toList();
    }
  }

  @Test
  void aLoadBringsEachByteOnceAndLeavesTheWholeFileInTheCache() throws IOException {
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
    }
    // One byte more is the byte that the opening of the file reads.
    assertThat(bytesAsked()).isEqualTo(LENGTH + 1);
    Path pointer =
        repository()
            .resolve("snapshots")
            .resolve(server.commit(MODEL))
            .resolve("model.safetensors");
    assertThat(pointer).isSymbolicLink().hasBinaryContent(BYTES);
    assertThat(blobs()).containsExactly(pointer.toRealPath());
    assertThat(repository().resolve("refs/main")).hasContent(server.commit(MODEL));
  }

  @Test
  void aPartOfAFileIsAllThatComesOfIt() throws IOException {
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 100, 5000);
    }
    assertThat(bytesAsked()).isEqualTo((1 << 20) + 1);
    assertThat(repository().resolve("snapshots")).doesNotExist();
  }

  @Test
  void aBlobOfAnotherSizeIsNamedAndLeftAlone() throws IOException {
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
    }
    Path blob = Files.write(blobs().getFirst(), new byte[100]);
    String wanted = blob + " has 100 bytes instead of " + LENGTH + ": remove it";
    for (String revision : List.of("main", server.commit(MODEL))) {
      Location file = Location.of("hf://org/model@" + revision + "/model.safetensors");
      try (GantrySession session = session()) {
        assertThat(session.list((Location.Remote) Location.of("hf://org/model@" + revision)))
            .isPresent();
        assertThatThrownBy(() -> checkLoad(session, file, 0, 1000))
            .isInstanceOf(TransferException.class)
            .hasMessageContaining(wanted);
      }
    }
    assertThat(blob).hasSize(100);
    Files.delete(blob);
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
    }
  }

  /// The same happens after a process was killed: the cache keeps the bytes that it has fetched.
  @Test
  void whatCameBeforeIsNotAskedForAgain() {
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, 3 << 20);
    }
    server.takeRequests();
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
    }
    assertThat(bytesAsked()).isEqualTo(LENGTH - (3 << 20) + 1);
  }

  @Test
  void aCommitThatTheCacheHasIsNeverAskedForAgain() {
    Location fixed = Location.of("hf://org/model@" + server.commit(MODEL) + "/model.safetensors");
    Location repository = Location.of("hf://org/model@" + server.commit(MODEL));
    Location missing = Location.of("hf://org/model@" + server.commit(MODEL) + "/missing.json");
    try (GantrySession session = session()) {
      checkLoad(session, fixed, 0, LENGTH);
      assertThat(session.list((Location.Remote) repository).orElseThrow()).hasSize(2);
    }
    assertThat(server.takeRequests()).isNotEmpty();
    try (GantrySession session = session()) {
      checkLoad(session, fixed, 0, LENGTH);
      assertThat(session.list((Location.Remote) repository).orElseThrow()).contains(fixed);
      assertThatThrownBy(() -> session.openFile(missing)).hasMessageContaining("no such file");
    }
    assertThat(server.takeRequests()).isEmpty();
  }

  /// The commit determines the bytes, so the content server need not state a version.
  /// A commit becomes a part of paths.
  @Test
  void whatIsRecordedForABranchAndIsNoCommitIsNotUsed() throws IOException {
    Path refs = Files.createDirectories(repository().resolve("refs"));
    Path _ = Files.writeString(refs.resolve("main"), "../../elsewhere");
    HubDisk disk = new HubDisk(FileCalls.ofPlatform(), true);
    HubCache cache = new HubCache(folder.resolve("hub"), disk);
    assertThat(cache.commit(HubName.of((Location.Remote) weights()))).isEmpty();
  }

  @Test
  void largeFilesNeedNoVersionOfTheirHost() {
    server.stateNoVersions();
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
    }
  }

  @Test
  void aBranchThatMovedIsReadAnew() {
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
      server.put(MODEL, "model.safetensors", TestFiles.bytes(8, 2 << 20));
      try (var file = session.openFile(weights())) {
        assertThat(file.size()).isEqualTo(2 << 20);
      }
    }
  }

  /// Two sessions are like two processes, because their locks belong to open files.
  @Test
  void twoThatFetchAtOnceFetchOnce() throws InterruptedException {
    Runnable load =
        () -> {
          try (GantrySession session = session()) {
            checkLoad(session, weights(), 0, LENGTH);
          }
        };
    session().close();
    Thread other = Thread.ofPlatform().start(load);
    load.run();
    other.join();
    // Each opening of the file asks for one byte more.
    assertThat(bytesAsked()).isBetween(LENGTH + 1L, LENGTH + 10L);
  }

  @Test
  void offlineTheCacheServesWhatItHas() {
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
    }
    server.takeRequests();
    settings.put("HF_HUB_OFFLINE", "1");
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
      assertThat(session.list((Location.Remote) Location.of("hf://org/model")).orElseThrow())
          .hasSize(1);
      assertThatThrownBy(() -> session.openFile(Location.of("hf://org/model/config.json")))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("HF_HUB_OFFLINE")
          .hasMessageContaining(folder.resolve("hub").toString());
    }
    assertThat(server.takeRequests()).isEmpty();
  }

  @Test
  void aHubThatIsNotReachedIsReplacedByTheCache() {
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
    }
    server.close();
    try (GantrySession session = session()) {
      checkLoad(session, weights(), 0, LENGTH);
      assertThatThrownBy(() -> session.openFile(Location.of("hf://org/model/config.json")))
          .hasMessageContaining("the hub at " + server.endpoint() + " was not reached");
    }
  }

  @Test
  void aFetchedFileIsWholeWhenTheCallReturns() {
    try (GantrySession session = session()) {
      for (String name : List.of("config.json", "model.safetensors")) {
        Path file = session.fetch((Location.Remote) Location.of("hf://org/model/" + name));
        assertThat(file).isRegularFile().hasFileName(name);
        assertThat(file.getParent()).hasFileName(server.commit(MODEL));
      }
      assertThat(session.fetch((Location.Remote) weights())).hasBinaryContent(BYTES);
    }
  }

  /// Python's library makes such files, and reads them without a request.
  @Test
  void anOpenFileOfTheCacheIsLocal() {
    HubStore store;
    try (GantrySession session = session()) {
      var _ = session.fetch((Location.Remote) weights());
    }
    store = HubStore.with(Map.copyOf(settings), 0);
    try (StoredFile file = store.open(weights(), CachePolicy.BUFFERED)) {
      assertThat(file).isInstanceOf(LocalFile.class);
      assertThat(file.size()).isEqualTo(LENGTH);
    } finally {
      store.close();
    }
  }

  @Test
  void withoutLinksASnapshotHasTheFilesThemselves() throws IOException {
    settings.put("HF_HUB_DISABLE_SYMLINKS", "1");
    try (GantrySession session = session()) {
      Object identity = identity(session);
      Path file = session.fetch((Location.Remote) weights());
      assertThat(Files.isSymbolicLink(file)).isFalse();
      assertThat(file).hasBinaryContent(BYTES);
      assertThat(identity(session)).isEqualTo(identity);
    }
  }

  /// Data whose file has another identity than its header had are refused.
  private static Object identity(GantrySession session) {
    try (SourceFile file = session.openFile(weights())) {
      return file.identity();
    }
  }
}
