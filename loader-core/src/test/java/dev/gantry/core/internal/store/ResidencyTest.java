// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.spi.Residency;
import dev.gantry.testing.FaultyFileCalls.Answers;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Which ways there are to learn whether a file's bytes are in the page cache.
class ResidencyTest extends SourceFileFixture {
  /// Opens the file if it can be read past the page cache; otherwise skips the test.
  private SourceFile openToLook() {
    SourceFile file = open(path, CachePolicy.BY_RESIDENCY);
    if (file.descriptors().direct() < 0) {
      file.close();
    }
    assumeTrue(file.descriptors().direct() >= 0, "this file system has no direct reads");
    return file;
  }

  @Test
  void oneQuestionIsAskedForASmallRead() {
    path = TestFiles.write(folder.resolve("large"), SEED, MANY);
    try (SourceFile file = openToLook();
        Arena arena = Arena.ofConfined()) {
      PageCache.keep(path, 0, MANY, arena);
      for (int length : new int[] {1, 4096, 150_000, 256 << 10}) {
        int before = calls.count(Function.CACHED_BYTES);
        assertThat(file.residency(0, length)).isEqualTo(Residency.HOT);
        assertThat(calls.count(Function.CACHED_BYTES)).as("%s", length).isEqualTo(before + 1);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"16384, HOT, 2", "0, COLD, 3"})
  void severalPlacesAreLookedAtForALargeReadUntilTheAnswerIsSure(
      long cached, Residency answer, int calls) {
    path = TestFiles.write(folder.resolve("large"), SEED, MANY);
    this.calls.from(Function.CACHED_BYTES, 1, new Answers(cached));
    try (SourceFile file = openToLook()) {
      assertThat(file.residency(0, MANY)).isEqualTo(answer);
      assertThat(this.calls.count(Function.CACHED_BYTES)).isEqualTo(calls);
    }
  }

  /// The three causes: another user's file that the caller may not write, an old kernel, and a
  /// file system without cachestat.
  @ParameterizedTest
  @EnumSource(names = {"EPERM", "ENOSYS", "EOPNOTSUPP"})
  void whereCachestatRefusesBytesAreReadWithoutWaiting(Errno errno) {
    path = TestFiles.write(folder.resolve("large"), SEED, MANY);
    calls.from(Function.CACHED_BYTES, 1, new Fails(errno));
    try (SourceFile file = openToLook();
        Arena arena = Arena.ofConfined()) {
      PageCache.keep(path, 0, MANY, arena);
      assertThat(file.residency(0, MANY)).isEqualTo(Residency.HOT);
      assertThat(calls.count(Function.PREAD_NO_WAIT)).isEqualTo(2);
      calls.from(Function.PREAD_NO_WAIT, 4, new Fails(Errno.EAGAIN));
      assertThat(file.residency(0, MANY)).as("one of four").isEqualTo(Residency.COLD);
      assertThat(file.residency(0, 4096)).isEqualTo(Residency.COLD);
      assertThat(calls.count(Function.CACHED_BYTES)).as("not asked again").isEqualTo(1);
      assertThat(file.residentBytes()).as("unknown by this means").isEqualTo(-1);
    }
  }

  @Test
  void whereNothingAnswersItIsNotKnownAndNotAskedAgain() {
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.EPERM));
    calls.from(Function.PREAD_NO_WAIT, 1, new Fails(Errno.EOPNOTSUPP));
    try (SourceFile file = openToLook()) {
      for (int i = 0; i < 3; i++) {
        assertThat(file.residency(0, LENGTH)).isEqualTo(Residency.UNKNOWN);
        assertThat(prefersDirect(file, 0, LENGTH)).as("as cold").isTrue();
      }
      assertThat(calls.count(Function.CACHED_BYTES)).isEqualTo(1);
      assertThat(calls.count(Function.PREAD_NO_WAIT)).isEqualTo(1);
    }
  }

  /// cachestat reports 0 pages on overlayfs, whatever the page cache holds.
  @Test
  void onOverlayfsAMappingIsAsked() {
    calls.from(Function.FILE_SYSTEM, 1, new Answers(OVERLAYFS));
    calls.from(Function.CACHED_BYTES, 1, new Answers(0));
    try (SourceFile file = openToLook()) {
      try (Arena arena = Arena.ofConfined()) {
        PageCache.keep(path, 0, LENGTH, arena);
        assertThat(file.residency(4097, 10_000)).isEqualTo(Residency.HOT);
        assertThat(file.residentBytes()).isEqualTo(LENGTH);
      }
      assumeTrue(PageCache.drop(path), "the page cache of this file system cannot be dropped");
      assertThat(file.residency(4097, 10_000)).isEqualTo(Residency.COLD);
      assertThat(file.residentBytes()).isZero();
    }
  }

  /// mincore reports all pages as resident to callers that may not write the file.
  @Test
  void onOverlayfsAFileOfAnotherIsNotKnown() {
    calls.from(Function.FILE_SYSTEM, 1, new Answers(OVERLAYFS));
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.EPERM));
    try (SourceFile file = openToLook()) {
      assertThat(file.residency(0, LENGTH)).isEqualTo(Residency.UNKNOWN);
      assertThat(file.residentBytes()).isEqualTo(-1);
      assertThat(calls.count(Function.MAPPED_BYTES)).isZero();
    }
  }

  @Test
  void aFileInMemoryIsHotWithoutAQuestion() {
    calls.from(Function.FILE_SYSTEM, 1, new Answers(TMPFS));
    try (SourceFile file = open(path, CachePolicy.BY_RESIDENCY)) {
      assertThat(file.inMemory()).isTrue();
      assertThat(file.residency(0, LENGTH)).isEqualTo(Residency.HOT);
      assertThat(file.residentBytes()).isEqualTo(LENGTH);
      assertThat(file.descriptors().directAbsence()).contains("in memory");
      assertThat(calls.count(Function.OPEN)).isEqualTo(1);
      assertThat(calls.count(Function.CACHED_BYTES)).isZero();
    }
  }

  @Test
  void withoutCachestatOneByteStandsForItsRequest() {
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.ENOSYS));
    try (SourceFile file = openToLook();
        Arena arena = Arena.ofConfined()) {
      PageCache.keep(path, 0, LENGTH, arena);
      assertThat(prefersDirect(file, 0, LENGTH)).as("hot").isFalse();
      assertThat(calls.count(Function.PREAD_NO_WAIT)).isEqualTo(1);

      calls.at(Function.PREAD_NO_WAIT, 2, new Fails(Errno.EAGAIN));
      assertThat(prefersDirect(file, 0, LENGTH)).as("said to be cold").isTrue();
    }
  }
}
