// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ChangingFile;
import dev.gantry.testing.ChangingFile.Change;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Files that a server changes between any two requests, and cached files that another program
/// changes between any two calls of a reader.
@ExtendWith(NoLeaks.class)
@Timeout(120)
class ChangingRemoteFilesTest {
  /// The number of bytes that a cache fetches at a time.
  private static final int BLOCK = 1 << 20;

  private static final int LENGTH = BLOCK + 5000;
  private static final byte[] BEFORE = TestFiles.bytes(1, LENGTH);
  private static final byte[] AFTER = TestFiles.bytes(2, LENGTH);
  private static final byte[] SHORT = TestFiles.bytes(1, 50_000);
  private static final long ROOM = 1L << 30;

  @TempDir Path folder;
  private final RangeServer server = new RangeServer();

  @AfterEach
  void close() {
    server.close();
  }

  private static byte[] load(GantrySession session, Location file, int length) {
    List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, length), 8));
    TransferOptions options =
        TransferOptions.defaults()
            .withThreads(1)
            .withLimits(
                PlanLimits.DEFAULT.withRequestBytes(length > BLOCK ? BLOCK / 4 : BLOCK / 64));
    try (Loaded loaded = session.load(all, Device.HOST, options)) {
      return TestFiles.bytes(loaded.regions().getFirst());
    }
  }

  private static int size(GantrySession session, Location file) {
    try (SourceFile open = session.openFile(file)) {
      return Math.toIntExact(open.size());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aServersFileIsOfOneVersion(boolean cached) throws IOException {
    ChangingFile.onServer(server, "file", BEFORE, AFTER, file -> whole(file, cached));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anAnswerThatIsCutIsNotContinuedByAnotherVersion(boolean cached) throws IOException {
    ChangingFile.withinAnswers(server, "file", BEFORE, AFTER, file -> whole(file, cached));
  }

  private byte[] whole(Location file, boolean cached) throws IOException {
    try (GantrySession session = GantrySession.open()) {
      if (cached) {
        session.cacheRemoteFiles(Files.createTempDirectory(folder, "cache"), ROOM);
      }
      return load(session, file, size(session, file));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {".data", ".blocks"})
  void aWholeFileOfACacheBringsTheServersBytesOrAnError(String suffix) throws IOException {
    Location file = server.put("file", SHORT);
    cachedReading(suffix, file, SHORT.length, SHORT.length, EnumSet.allOf(Change.class));
  }

  /// docs/cache.md explains why no other program may write to a file that is not complete.
  @ParameterizedTest
  @ValueSource(strings = {".data", ".blocks"})
  void aFileThatACacheFillsBringsTheServersBytesOrAnError(String suffix) throws IOException {
    Location file = server.put("file", BEFORE);
    cachedReading(suffix, file, LENGTH, 100, EnumSet.of(Change.REPLACE, Change.DELETE));
  }

  /// @param there how many bytes the cache has before the first change
  private void cachedReading(
      String suffix, Location file, int length, int there, Set<Change> changes) throws IOException {
    Path cache = folder.resolve("cache");
    try (GantrySession session = GantrySession.open()) {
      session.cacheRemoteFiles(cache, ROOM);
      byte[] _ = load(session, file, there);
    }
    Path changed = only(cache, suffix);
    byte[] other = TestFiles.bytes(3, Math.toIntExact(Files.size(changed)));
    ChangingFile.inCache(
        changed,
        other,
        changes,
        (session, _) -> {
          session.cacheRemoteFiles(cache, ROOM);
          byte[] first = load(session, file, length);
          assertThat(Arrays.equals(load(session, file, length), first)).isTrue();
          return first;
        });
  }

  private static Path only(Path folder, String suffix) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(path -> path.toString().endsWith(suffix)).findFirst().orElseThrow();
    }
  }
}
