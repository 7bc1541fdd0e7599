// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.HubServer;
import dev.gantry.testing.HubServer.Refusal;
import dev.gantry.testing.HubServer.Request;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Refusals of a hub and their messages, and the hosts that get the token.
@ExtendWith(NoLeaks.class)
class HubFaultTest {
  private static final String MODEL = "org/model";
  private static final String TOKEN = "hf_secret";
  private static final Location FILE = Location.of("hf://org/model/weights.bin");

  @TempDir private Path folder;
  private final HubServer server = new HubServer(1000);
  private final Map<String, String> settings = new HashMap<>();

  HubFaultTest() {
    server.put(MODEL, "weights.bin", new byte[5000]);
    server.put(MODEL, "config.json", new byte[10]);
    settings.put("HF_ENDPOINT", server.endpoint() + "/");
  }

  @Test
  void aListOfTooManyFilesIsRefusedWhateverItsPagesHold() {
    HubName name = HubName.of(Location.of("hf://org/model"));
    List<HubTree.Entry> entries = new ArrayList<>();
    String page = "[{\"type\":\"file\",\"path\":\"a\",\"oid\":\"b\",\"size\":1}]";
    HubTree.addPage(name, page, entries);
    entries.addAll(Collections.nCopies(1_000_000 - 1, entries.getFirst()));
    assertThatThrownBy(() -> HubTree.addPage(name, page, entries))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("hf://org/model");
  }

  @ParameterizedTest
  @ValueSource(strings = {"\"size\":-1", "\"size\":1,\"lfs\":{\"oid\":\"c\",\"size\":-1}"})
  void aSizeBelowZeroInAListIsRefused(String size) {
    HubName name = HubName.of(Location.of("hf://org/model"));
    String page = "[{\"type\":\"file\",\"path\":\"a\",\"oid\":\"b\"," + size + "}]";
    assertThatThrownBy(() -> HubTree.addPage(name, page, new ArrayList<>()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("not the JSON that a hub sends");
  }

  @AfterEach
  void close() {
    server.close();
  }

  private void open(Location file) {
    settings.put("HF_HOME", folder.toString());
    try (HubStore store = HubStore.with(Map.copyOf(settings), 0)) {
      store.open(file, CachePolicy.BUFFERED).close();
    }
  }

  private void checkRefused(Location file, String... reasons) {
    assertThatThrownBy(() -> open(file))
        .isInstanceOf(TransferException.class)
        .hasMessageContainingAll(reasons)
        .hasMessageNotContainingAny("\n", TOKEN);
  }

  @ParameterizedTest
  @CsvSource({
    "401, RepoNotFound, false, 'check the name; for a private one, set HF_TOKEN'",
    "404, RepoNotFound, true, 'there is no such repository, or the token may not see it'",
    "401, '', true, 'the hub does not accept the token: renew it in HF_TOKEN'",
    "403, GatedRepo, false, 'the repository is gated: ask for access at'",
    "403, GatedRepo, true, 'gated, and the token''s user has no access: ask for it at'",
    "403, '', true, 'the token does not allow this'",
    "403, '', false, 'the hub forbids this without a token: set HF_TOKEN'",
    "404, RevisionNotFound, false, 'the repository has no revision ''main'''",
    "418, '', false, 'status 418: the hub refused'"
  })
  void aRefusalIsOneLineThatSaysWhatToDo(int status, String code, boolean known, String reason) {
    if (known) {
      settings.put("HF_TOKEN", TOKEN);
    }
    server.refuse(_ -> Optional.of(new Refusal(status, code)));
    checkRefused(FILE, reason);
    assertThat(server.takeRequests()).hasSize(1);
  }

  @Test
  void theTokenGoesToTheHubAndToNoOtherHost() {
    settings.put("HF_TOKEN", " " + TOKEN + "\n");
    open(FILE);
    List<Request> requests = server.takeRequests();
    assertThat(requests).extracting(Request::large).contains(true, false);
    assertThat(requests)
        .allSatisfy(request ->
            assertThat(request.token()).isEqualTo(request.large() ? "" : "Bearer " + TOKEN));
  }

  @Test
  void theTokenIsReadFromItsFile() throws IOException {
    Path file = Files.writeString(folder.resolve("token"), TOKEN + "\n");
    open(FILE);
    assertThat(server.takeRequests().getFirst().token()).isEqualTo("Bearer " + TOKEN);
    settings.put("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1");
    open(FILE);
    assertThat(server.takeRequests().getFirst().token()).isEmpty();
    assertThat(file).exists();
  }

  @ParameterizedTest
  @ValueSource(strings = {TOKEN + "\nmore", TOKEN + " more", TOKEN + "\u00e9"})
  void aTokenThatNoHeaderTakesIsRefusedAndNotShown(String token) {
    settings.put("HF_TOKEN", token);
    assertThatThrownBy(() -> open(FILE))
        .isInstanceOf(MisuseException.class)
        .hasMessage("HF_TOKEN must have one word of ASCII characters, the token");
    assertThat(server.takeRequests()).isEmpty();
  }

  @Test
  void aHostThatIsUnknownIsCalledThat() {
    settings.put("HF_ENDPOINT", "http://hub.invalid");
    checkRefused(FILE, "the hub at http://hub.invalid was not reached (unknown host)");
  }

  @Test
  void aMissingFileIsNotedAsPythonDoes() {
    Location missing = Location.of("hf://org/model/sub/missing.json");
    checkRefused(missing, "has no such file", "status 404");
    assertThat(
            folder
                .resolve("hub/models--org--model/.no_exist")
                .resolve(server.commit(MODEL))
                .resolve("sub/missing.json"))
        .isEmptyFile();
  }

  @Test
  void bytesThatAreNotThoseOfTheirNameAreRefused() throws IOException {
    server.put(MODEL, "small.json", new byte[] {1, 2, 3});
    server.damage();
    settings.put("HF_HOME", folder.toString());
    try (HubStore store = HubStore.with(Map.copyOf(settings), 1000)) {
      assertThatThrownBy(() -> store.fetch(Location.of("hf://org/model/small.json")))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("the bytes that came are not those of the ETag");
    }
    assertThat(folder.resolve("hub/models--org--model/blobs")).isEmptyDirectory();
  }

  @Test
  void weightsAreReadPastAFolderThatCannotBeMade() throws IOException {
    settings.put("HF_HOME", Files.createFile(folder.resolve("file")).resolve("home").toString());
    try (HubStore store = HubStore.with(Map.copyOf(settings), 0)) {
      try (StoredFile file = store.open(FILE, CachePolicy.BUFFERED)) {
        assertThat(file.size()).isEqualTo(5000);
      }
      assertThatThrownBy(() -> store.fetch(FILE)).hasMessageContaining("errno 20 ENOTDIR");
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 10_000})
  void weightsOfAnySizeAreReadPastAFullDisk(long smallBytes) {
    settings.put("HF_HOME", folder.toString());
    FaultyFileCalls full = new FaultyFileCalls(FileCalls.ofPlatform());
    full.from(Function.PWRITE, 1, new Fails(Errno.ENOSPC));
    try (HubStore store = HubStore.with(Map.copyOf(settings), smallBytes, full);
        SourceFile file = new SourceFile(FILE, store.open(FILE, CachePolicy.BUFFERED));
        Arena arena = Arena.ofShared()) {
      MemorySegment bytes = arena.allocate(5000).fill((byte) 1);
      boolean _ = file.read(bytes, 0, 5000, false);
      assertThat(bytes.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(new byte[5000]);
      assertThatThrownBy(() -> store.fetch(Location.of("hf://org/model/config.json")))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining(smallBytes > 0 ? "ENOSPC" : "a warning in the log says why");
    }
  }

  @Test
  @Timeout(30)
  void aFetchThatTheDiskDoesNotTakeDoesNotWaitForOtherReaders() {
    settings.put("HF_HOME", folder.toString());
    FaultyFileCalls calls = new FaultyFileCalls(FileCalls.ofPlatform());
    try (HubStore store = HubStore.with(Map.copyOf(settings), 0, calls);
        StoredFile _ = store.open(FILE, CachePolicy.BUFFERED)) {
      calls.from(Function.PWRITE, calls.count(Function.PWRITE) + 1, new Fails(Errno.ENOSPC));
      assertThatThrownBy(() -> store.fetch(FILE))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("a warning in the log says why");
      assertThat(Files.isSymbolicLink(snapshotFile())).isFalse();
    }
  }

  private Path snapshotFile() {
    return folder
        .resolve("hub/models--org--model/snapshots")
        .resolve(server.commit(MODEL))
        .resolve("weights.bin");
  }

  /// The cache forgets which links are wanted when its last reader of the file closes it.
  @Test
  @Timeout(30)
  void aFetchMakesItsLinkIfAnotherReaderClosesTheFileMeanwhile() throws Exception {
    settings.put("HF_HOME", folder.toString());
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    try (HubStore store = HubStore.with(Map.copyOf(settings), 0)) {
      FutureTask<Path> fetch = new FutureTask<>(() -> store.fetch(FILE));
      try (StoredFile _ = store.open(FILE, CachePolicy.BUFFERED)) {
        server.refuse(request -> {
          if (request.large()) {
            asked.countDown();
            Latches.await(closed);
          }
          return Optional.empty();
        });
        Thread _ = Thread.ofPlatform().start(fetch);
        Latches.await(asked);
      }
      closed.countDown();
      assertThat(fetch.get()).isEqualTo(snapshotFile()).hasBinaryContent(new byte[5000]);
    }
  }

  /// The cache has all bytes of a file, and another thread is writing them to the disk.
  @Test
  @Timeout(30)
  void aFetchWaitsForAFileThatIsBeingPublished() throws Exception {
    settings.put("HF_HOME", folder.toString());
    CountDownLatch syncs = new CountDownLatch(1);
    CountDownLatch second = new CountDownLatch(1);
    FaultyFileCalls calls = new FaultyFileCalls(FileCalls.ofPlatform());
    calls.at(
        Function.FSYNC,
        1,
        new After(() -> {
          syncs.countDown();
          Latches.await(second);
        }));
    try (HubStore store = HubStore.with(Map.copyOf(settings), 0, calls)) {
      FutureTask<Path> first = new FutureTask<>(() -> store.fetch(FILE));
      FutureTask<Path> then = new FutureTask<>(() -> store.fetch(FILE));
      Thread _ = Thread.ofPlatform().start(first);
      Latches.await(syncs);
      awaitWaiting(Thread.ofPlatform().start(then));
      FutureTask<Boolean> interrupted =
          new FutureTask<>(() -> {
            assertThatThrownBy(() -> store.fetch(FILE))
                .hasMessageContaining(", on an interrupted thread: cancelled");
            return Thread.interrupted();
          });
      Thread impatient = Thread.ofPlatform().start(interrupted);
      awaitWaiting(impatient);
      impatient.interrupt();
      boolean kept = interrupted.get();
      second.countDown();
      assertThat(kept).isTrue();
      assertThat(then.get()).hasBinaryContent(new byte[5000]).isEqualTo(first.get());
    }
  }

  /// The cache has all bytes of a file, and the disk fails when they are written to it.
  @Test
  @Timeout(30)
  void aFetchThatTheDiskFailsInTheEndDoesNotWaitForOtherReaders() {
    settings.put("HF_HOME", folder.toString());
    CountDownLatch syncs = new CountDownLatch(1);
    CountDownLatch waits = new CountDownLatch(1);
    FileCalls calls =
        new ForwardingFileCalls(FileCalls.ofPlatform()) {
          @Override
          public int fsync(int fd) {
            syncs.countDown();
            Latches.await(waits);
            return -Errno.EIO.code();
          }
        };
    try (HubStore store = HubStore.with(Map.copyOf(settings), 0, calls);
        StoredFile _ = store.open(FILE, CachePolicy.BUFFERED)) {
      FutureTask<Path> fetch = new FutureTask<>(() -> store.fetch(FILE));
      Thread fetching = Thread.ofPlatform().start(fetch);
      Latches.await(syncs);
      awaitWaiting(fetching);
      waits.countDown();
      assertThatThrownBy(fetch::get).hasMessageContaining("a warning in the log says why");
    }
  }

  private static void awaitWaiting(Thread fetching) {
    Latches.awaitThat(() ->
        !fetching.isAlive()
            || Arrays.toString(fetching.getStackTrace()).contains("HubOpening.await"));
  }

  @Test
  void aFetchReadsTheLastPieceOfAFileThatIsShorterThanTheOthers() throws IOException {
    Path file = Files.write(folder.resolve("file"), new byte[2500]);
    FaultyFileCalls calls = new FaultyFileCalls(FileCalls.ofPlatform());
    StoredFile local = new HubVersion.Cached(calls, file, CachePolicy.BUFFERED, "etag");
    try (SourceFile source = new SourceFile(FILE, local)) {
      HubOpening.read(source, 1000);
    }
    assertThat(calls.count(Function.PREAD)).isEqualTo(3);
  }

  @Test
  void failuresThatPassAreTriedAgain() {
    AtomicInteger count = new AtomicInteger();
    server.refuse(
        _ -> count.getAndIncrement() == 0 ? Optional.of(new Refusal(503, "")) : Optional.empty());
    open(FILE);
    assertThat(count).hasValueGreaterThan(1);
  }

  @Test
  void whatIsNoHubIsNamedAsThat() {
    server.commit(MODEL, "../../x");
    checkRefused(FILE, "the answer lacks X-Repo-Commit", "does HF_ENDPOINT name a hub?");
    assertThat(folder).isEmptyDirectory();
  }

  @ParameterizedTest
  @CsvSource({"ftp://host", "no address", "http://host:65536"})
  void anEndpointThatIsNoAddressIsRefused(String endpoint) {
    settings.put("HF_ENDPOINT", endpoint);
    assertThatThrownBy(() -> open(FILE))
        .isInstanceOf(MisuseException.class)
        .hasMessage("HF_ENDPOINT must be an http or https address (was " + endpoint + ")");
  }

  @ParameterizedTest
  @CsvSource({"http://user:x@host", "http://host?key=x"})
  void anEndpointThatMayHaveASecretIsRefusedWithoutIt(String endpoint) {
    settings.put("HF_ENDPOINT", endpoint);
    assertThatThrownBy(() -> open(FILE))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "HF_ENDPOINT must be an http or https address without a user name and without a query");
  }

  @Test
  void aNameOfARepositoryIsNoFile() {
    checkRefused(Location.of("hf://org/model"), "name a file in it");
    assertThat(server.takeRequests()).isEmpty();
  }
}
