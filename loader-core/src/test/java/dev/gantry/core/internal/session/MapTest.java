// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.MappedSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Files that are mapped into memory. [NoLeaks] also checks `/proc/self/maps`.
@ExtendWith(NoLeaks.class)
class MapTest {
  private static final int LENGTH = 4 << 20;

  @TempDir Path folder;
  private final GantrySession gantry = GantrySession.open();
  private Path file;

  @BeforeEach
  void writeFile() {
    file = TestFiles.write(folder.resolve("weights"), 11, LENGTH);
  }

  @AfterEach
  void close() {
    gantry.close();
  }

  private ExtentRequest wanted(long offset, long length, int alignment) {
    return new ExtentRequest(new Extent(file, offset, length), alignment);
  }

  @Test
  void extentsOfOneFileShareOneMapping() throws IOException {
    List<ExtentRequest> wanted =
        List.of(wanted(LENGTH - 3, 3, 1), wanted(8, 100, 8), wanted(5000, 0, 8), wanted(8, 1, 8));
    try (Loaded loaded = gantry.map(wanted)) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      assertThat(NoLeaks.mappedFiles()).containsExactly(file.toString());
      assertThat(NoLeaks.openFiles()).as("the mapping needs no descriptor").isEmpty();
      assertThat(loaded.report().bytes()).isZero();
    }
  }

  @Test
  void theMappingSpansOnlyWhatIsWanted() {
    try (Loaded loaded =
        gantry.map(List.of(wanted(1 << 20, 4096, 8), wanted((1 << 20) + 8192, 8, 8)))) {
      assertThat(loaded.regions()).hasSize(2);
      assertThat(LiveResources.snapshot().mappedBytes()).isEqualTo(8200);
    }
  }

  /// A kernel whose pages have 64 KiB.
  private static final class LargePages extends ForwardingFileCalls {
    static final long BYTES = 64 << 10;

    LargePages() {
      super(Libc.INSTANCE);
    }

    @Override
    public long pageBytes() {
      return BYTES;
    }
  }

  @Test
  void aMappingBeginsWithAPageHoweverLargeThatIs() throws IOException {
    List<ExtentRequest> wanted = List.of(wanted(3 * LargePages.BYTES + 5 * 4096 + 8, 9000, 8));
    try (GantrySession large = GantrySession.open(new LargePages());
        Loaded loaded = large.map(wanted)) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      assertThat(mappedOffset()).isEqualTo(3 * LargePages.BYTES);
    }
  }

  /// Returns the offset in the file at which its only mapping begins.
  private long mappedOffset() throws IOException {
    String mapping =
        Files.readAllLines(Path.of("/proc/self/maps")).stream()
            .filter(line -> line.endsWith(file.toString()))
            .findFirst()
            .orElseThrow();
    return Long.parseLong(mapping.split(" ", 4)[2], 16);
  }

  @Test
  void nothingIsReadBeforeItIsTouched() {
    assumeTrue(PageCache.drop(file), "the page cache of this file system cannot be dropped");
    int descriptor = Libc.INSTANCE.open(file, FileCalls.O_RDONLY, 0);
    try (Loaded loaded = gantry.map(List.of(wanted(0, LENGTH, 8)))) {
      assertThat(Libc.INSTANCE.cachedBytes(descriptor, 0, LENGTH)).isZero();
      byte first = segment(loaded.regions().getFirst()).get(ValueLayout.JAVA_BYTE, 0);
      assertThat(first).isEqualTo(TestFiles.bytes(11, 1)[0]);
      assertThat(Libc.INSTANCE.cachedBytes(descriptor, 0, LENGTH)).isPositive();
    } finally {
      assertThat(Libc.INSTANCE.close(descriptor)).isZero();
    }
  }

  @Test
  void whatIsWrittenThereNeverReachesTheFile() throws IOException {
    try (Loaded loaded = gantry.map(List.of(wanted(0, LENGTH, 8)))) {
      MemorySegment memory = segment(loaded.regions().getFirst());
      memory.fill((byte) 0);
      assertThat(memory.get(ValueLayout.JAVA_BYTE, LENGTH - 1)).isZero();
      assertThat(Files.readAllBytes(file)).isEqualTo(TestFiles.bytes(11, LENGTH));
    }
    assertThat(Files.readAllBytes(file)).isEqualTo(TestFiles.bytes(11, LENGTH));
  }

  private static MemorySegment segment(Region region) {
    assertThat(region.slab()).isInstanceOf(MappedSlab.class);
    return ((MappedSlab) region.slab()).segment();
  }

  @Test
  void whatWouldBeMisalignedIsCopied() {
    List<ExtentRequest> wanted = List.of(wanted(4097, 1000, 4), wanted(4100, 1000, 4));
    try (Loaded loaded = gantry.map(wanted)) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      assertThat(loaded.regions().get(0).slab()).isInstanceOf(HostSlab.class);
      assertThat(loaded.regions().get(1).slab()).isInstanceOf(MappedSlab.class);
    }
  }

  @Test
  void aFileShorterThanItsExtentIsRefused() {
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () -> gantry.map(List.of(wanted(0, 8, 8), wanted(LENGTH - 8, 20, 4))));
    assertThat(failure.failure()).isEqualTo(new Failure.EndOfFile(12));
    assertThat(failure).hasMessageContaining(file.toString());
  }

  @Test
  void oneFileOfSeveralThatIsMissingUndoesTheOthers() {
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () ->
                gantry.map(
                    List.of(
                        wanted(0, 8, 8),
                        new ExtentRequest(new Extent(folder.resolve("missing"), 0, 8), 8))));
    assertThat(failure).hasMessageContaining("missing").hasMessageContaining("ENOENT");
  }

  @Test
  void aViewOutlivesItsLoad() {
    Loaded loaded = gantry.map(List.of(wanted(123, 456, 1)));
    Region region = loaded.regions().getFirst();
    Runnable release = region.retain();
    loaded.close();
    assertThat(TestFiles.bytes(region)).isEqualTo(TestFiles.expected(wanted(123, 456, 1).extent()));
    release.run();
  }

  @Test
  void manyMappingsComeAndGo() throws IOException {
    for (int i = 0; i < 100; i++) {
      try (Loaded loaded = gantry.map(List.of(wanted(i * 4096L, 4096, 8)))) {
        assertThat(TestFiles.bytes(loaded.regions().getFirst())).hasSize(4096);
      }
    }
    assertThat(NoLeaks.mappedFiles()).isEmpty();
  }
}
