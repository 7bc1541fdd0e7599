// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.IndexFile;
import dev.gantry.formats.internal.webdataset.TarIndex.Numbers;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// An index agrees with the headers of its archive, or is refused.
@ExtendWith(NoLeaks.class)
class StoredIndexTest {
  private static final GantrySession SESSION = GantrySession.shared();

  @TempDir Path folder;
  private Location archive = Location.of(Path.of("none"));
  private Path index = Path.of("none");

  @BeforeEach
  void write() {
    Path file =
        new HandmadeTar()
            .file("a.cls", "7")
            .file("a.npy", WebDatasetCatalogueTest.npy("<i2", "(2,)", new byte[] {1, 2, 3, 4}))
            .file("b.CLS", "-8\n")
            .file("b.txt", "text")
            .file("c.empty", "")
            .write(folder.resolve("x.tar"));
    archive = Location.of(file);
    index = IndexFile.of(archive, SESSION).index().path();
  }

  private static TarIndex scan(Location file) {
    return TarIndex.scan(SESSION, file, (_, _) -> {});
  }

  private static void build(Location file) {
    StoredIndex.build(SESSION, file, (_, _) -> {}).close();
  }

  private static List<long[]> numbers(TarIndex index) {
    return Stream.of(Numbers.ENDS, Numbers.OFFSETS, Numbers.LENGTHS, Numbers.VALUES)
        .map(each -> index.numbers(each).toArray(ValueLayout.JAVA_LONG_UNALIGNED))
        .toList();
  }

  @Test
  void anIndexSaysWhatTheHeadersSay() {
    build(archive);
    try (TarIndex scanned = scan(archive)) {
      StoredIndex.Found found = StoredIndex.open(SESSION, archive);
      assertThat(found).isInstanceOf(StoredIndex.Found.Usable.class);
      try (TarIndex opened = ((StoredIndex.Found.Usable) found).index()) {
        assertThat(opened.fields()).containsExactly("cls", "npy", "txt", "empty");
        assertThat(opened.fields()).isEqualTo(scanned.fields());
        assertThat(opened.samples()).isEqualTo(3);
        assertThat(opened.bytes()).isEqualTo(scanned.bytes());
        assertThat(opened.identity()).isEqualTo(scanned.identity());
        assertThat(opened.fileBytes()).isEqualTo(scanned.fileBytes());
        for (int i = 0; i < 4; i++) {
          assertThat(numbers(opened).get(i)).isEqualTo(numbers(scanned).get(i));
        }
        for (long sample = 0; sample < 3; sample++) {
          for (int field = 0; field < 4; field++) {
            boolean[] wanted = new boolean[4];
            wanted[field] = true;
            assertThat(opened.member(sample, wanted)).isEqualTo(scanned.member(sample, wanted));
          }
        }
        assertThat(opened.value(0)).isEqualTo(7);
        assertThat(opened.value(2)).isEqualTo(-8);
        assertThat(opened.value(3)).isEqualTo(TarIndex.NO_VALUE);
      }
    }
  }

  @Test
  void anArchiveWithoutSamplesHasAnIndex() {
    Location empty = Location.of(new HandmadeTar().write(folder.resolve("empty.tar")));
    build(empty);
    StoredIndex.Found found = StoredIndex.open(SESSION, empty);
    try (TarIndex opened = ((StoredIndex.Found.Usable) found).index()) {
      assertThat(opened.samples()).isZero();
    }
  }

  @Test
  void anArchiveThatChangesWhileItIsReadGetsNoIndex() {
    Runnable change =
        () -> {
          try {
            Files.setLastModifiedTime(archive.path(), FileTime.fromMillis(0));
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        };
    // The archive is closed after its headers were read.
    FaultyFileCalls calls =
        new FaultyFileCalls(FileCalls.ofPlatform()).at(Function.CLOSE, 1, new After(change));
    try (GantrySession session = Sessions.over(calls)) {
      assertThatThrownBy(() -> StoredIndex.build(session, archive, (_, _) -> {}))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("changed-meanwhile");
    }
    assertThat(index).doesNotExist();
  }

  @Test
  void missingAndStaleIndexesAreUnusable() throws IOException {
    assertThat(StoredIndex.open(SESSION, archive))
        .isEqualTo(new StoredIndex.Found.Unusable(index + " does not exist"));
    build(archive);
    Files.setLastModifiedTime(archive.path(), FileTime.fromMillis(1));
    assertThat(StoredIndex.open(SESSION, archive))
        .isInstanceOfSatisfying(
            StoredIndex.Found.Unusable.class,
            found -> assertThat(found.reason()).contains("is stale"));
    Location gone = Location.of(folder.resolve("gone.tar"));
    assertThatThrownBy(() -> StoredIndex.open(SESSION, gone)).isInstanceOf(TransferException.class);
  }

  @Test
  void nothingIsWrittenOfADamagedOrCompressedArchive() throws IOException {
    byte[] bytes = Files.readAllBytes(archive.path());
    Path damaged = HandmadeTar.write(folder.resolve("d.tar"), Arrays.copyOf(bytes, 3000));
    Path gzip = HandmadeTar.write(folder.resolve("d.tar.gz"), HandmadeTar.gzip(bytes));
    assertThatThrownBy(() -> build(Location.of(damaged)))
        .isInstanceOf(MalformedFileException.class);
    assertThatThrownBy(() -> build(Location.of(gzip))).isInstanceOf(MisuseException.class);
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(file -> file.getFileName().toString()))
          .containsExactlyInAnyOrder("x.tar", "d.tar", "d.tar.gz");
    }
  }

  /// The index has correct checksums, as if its writer had counted wrongly.
  @ParameterizedTest
  @CsvSource({
    "ENDS, 0, 0",
    "ENDS, 1, 2",
    "ENDS, 2, 6",
    "ENDS, 2, 4",
    "OFFSETS, 0, -1",
    "OFFSETS, 1, 512",
    "OFFSETS, 4, 9223372036854775807",
    "LENGTHS, 0, -1",
    "LENGTHS, 3, 1000000",
    "LENGTHS, 0, 2000"
  })
  void anIndexThatPointsElsewhereIsRefused(Numbers numbers, int at, long value) {
    try (TarIndex wrong = scan(archive)) {
      wrong.numbers(numbers).setAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, at, value);
      StoredIndex.write(IndexFile.of(archive, SESSION), wrong);
    }
    assertThatThrownBy(() -> StoredIndex.open(SESSION, archive))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("samples or members lie where the archive has none");
  }

  /// Bytes are changed at random offsets; the checksums reveal each change.
  @Test
  void aDamagedIndexIsRefused() throws IOException {
    build(archive);
    byte[] good = Files.readAllBytes(index);
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    int header = (int) ByteBuffer.wrap(good).order(ByteOrder.LITTLE_ENDIAN).getLong();
    for (int i = 0; i < 1000; i++) {
      byte[] bad = good.clone();
      int at = random.nextInt(3) > 0 ? random.nextInt(8 + header) : random.nextInt(good.length);
      bad[at] ^= (byte) (1 + random.nextInt(255));
      Files.write(index, i % 10 == 0 ? Arrays.copyOf(good, at) : bad);
      try {
        if (StoredIndex.open(SESSION, archive)
            instanceof StoredIndex.Found.Usable(TarIndex found)) {
          found.close();
          // A change among the spaces that pad the header has no effect.
          assertThat(at).as("seed %s", seed).isLessThan(8 + header);
        }
      } catch (MalformedFileException fault) {
        assertThat(fault.file().path()).isEqualTo(index);
      } catch (RuntimeException | Error failure) {
        throw new AssertionError("seed " + seed + ", change " + i, failure);
      }
    }
  }
}
