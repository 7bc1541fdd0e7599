// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A cache neither reads nor changes files that another user could have put into its folder.
@ExtendWith(NoLeaks.class)
class CacheOwnerTest {
  private static final int LENGTH = 2 * CacheEntry.BLOCK_BYTES + 12_345;
  private static final byte[] BYTES = TestFiles.bytes(21, LENGTH);
  private static final int NOBODY = 65_534;
  private static final long ROOM = 1L << 30;

  private final RangeServer server = new RangeServer();
  private final Location file = server.put("data", BYTES);

  @TempDir private Path scratch;
  private Path folder;

  @BeforeEach
  void name() {
    folder = scratch.resolve("cache");
  }

  @AfterEach
  void close() {
    server.close();
  }

  private void checkLoad() {
    try (GantrySession session = GantrySession.open()) {
      session.cacheRemoteFiles(folder, ROOM);
      List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1));
      try (Loaded loaded = session.load(all, Device.HOST, TransferOptions.defaults())) {
        byte[] found = TestFiles.bytes(loaded.regions().getFirst());
        assertThat(Arrays.mismatch(found, BYTES)).isEqualTo(-1);
      }
    }
  }

  private Path only(String suffix) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(path -> path.toString().endsWith(suffix)).findFirst().orElseThrow();
    }
  }

  private static void giveToNobody(Path path) throws IOException {
    assumeTrue("root".equals(System.getProperty("user.name")), "only root gives files away");
    Files.setAttribute(path, "unix:uid", NOBODY);
  }

  /// Changes the first byte, and corrects the checksum of its block.
  private void poison() throws IOException {
    byte[] block = Arrays.copyOf(BYTES, CacheEntry.BLOCK_BYTES);
    block[0]++;
    int sum = Crc32c.of(MemorySegment.ofArray(block));
    ByteBuffer entry = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    entry.putInt(sum).putInt(~sum ^ 0x9E3779B9).flip();
    try (FileChannel data = FileChannel.open(only(".data"), StandardOpenOption.WRITE);
        FileChannel blocks = FileChannel.open(only(".blocks"), StandardOpenOption.WRITE)) {
      int _ = data.write(ByteBuffer.wrap(block));
      int _ = blocks.write(entry, 64);
    }
  }

  @Test
  void aFolderThatIsMadeIsItsOwnersAlone() throws IOException {
    checkLoad();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)))
        .isEqualTo("rwx------");
    for (String suffix : List.of(".data", ".blocks", "lock")) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(only(suffix))))
          .isEqualTo("rw-------");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {".data", ".blocks"})
  void filesOfAnotherUserAreNotServedThoughTheirChecksumsAreRight(String suffix)
      throws IOException {
    checkLoad();
    poison();
    Path foreign = only(suffix);
    giveToNobody(foreign);
    byte[] before = Files.readAllBytes(foreign);
    checkLoad();
    assertThat(foreign).hasBinaryContent(before);
    assertThat(Files.getAttribute(foreign, "unix:uid")).isEqualTo(NOBODY);
  }

  @Test
  void filesThatOthersMayWriteAreNotServed() throws IOException {
    checkLoad();
    poison();
    Files.setPosixFilePermissions(only(".data"), PosixFilePermissions.fromString("rw-rw-rw-"));
    checkLoad();
  }

  @Test
  void aFolderOfAnotherUserIsNotUsed() throws IOException {
    checkLoad();
    poison();
    giveToNobody(folder);
    checkLoad();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rwxrwx---", "rwx----w-"})
  void aFolderThatOthersMayWriteIsNotUsed(String permissions) throws IOException {
    checkLoad();
    poison();
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString(permissions));
    checkLoad();
  }

  /// Folders get these permissions from the usual umask. Others then see only file names, which
  /// are hashes.
  @Test
  void aFolderThatOthersMayOnlyListIsUsed() throws IOException {
    Path _ = Files.createDirectory(folder);
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
    checkLoad();
    assertThat(only(".data")).hasBinaryContent(BYTES);
  }

  @ParameterizedTest
  @ValueSource(strings = {".data", ".blocks", "lock"})
  void aLinkIsNeitherFollowedNorRemoved(String suffix) throws IOException {
    checkLoad();
    Path link = only(suffix);
    Path victim = scratch.resolve("victim");
    byte[] before = suffix.equals(".data") ? new byte[LENGTH] : Files.readAllBytes(link);
    Files.write(victim, before);
    Files.delete(link);
    if (!suffix.equals(".blocks")) {
      // Without its checksums the cache must write the data anew.
      Path blocks = only(".blocks");
      byte[] none = Files.readAllBytes(blocks);
      Arrays.fill(none, suffix.equals("lock") ? 0 : 32, none.length, (byte) 0);
      Files.write(blocks, none);
    }
    Files.createSymbolicLink(link, victim);
    checkLoad();
    assertThat(victim).hasBinaryContent(before);
    assertThat(Files.isSymbolicLink(link)).isTrue();
    assertThat(Files.exists(victim, LinkOption.NOFOLLOW_LINKS)).isTrue();
  }

  /// The cache removes files to get space, but not files that other users have put there.
  @Test
  void foreignFilesStayWhenRoomIsMade() throws IOException {
    checkLoad();
    Path foreign = only(".data");
    giveToNobody(foreign);
    new CacheFolder(Libc.INSTANCE, folder, ROOM)
        .closed(foreign.getFileName().toString().substring(0, 64), true);
    assertThat(foreign).exists();
    assertThat(only(".blocks")).exists();
  }
}
