// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Disk errors and power cuts while an index is written, and disk errors while an index is opened.
@ExtendWith(NoLeaks.class)
class IndexFaultTest {
  private static final int SEEDS = 4;

  @TempDir Path root;
  @TempDir Path scratch;
  private Path file;
  private Path index;

  @BeforeEach
  void write() {
    try (GantrySession session = GantrySession.open()) {
      file = TestExamples.write(session, root.resolve("data"), 1, 10);
    }
    index = TfRecordIndex.indexFile(file);
  }

  private void build(FileCalls calls) {
    try (GantrySession session = Sessions.over(calls)) {
      TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    }
  }

  private void buildAgain(FileCalls calls) {
    try (GantrySession session = Sessions.over(calls)) {
      TfRecordIndex.build(
          file, TfRecordIndex.Options.defaults().withFeatures(List.of("label")), session);
    }
  }

  private static byte @Nullable [] bytes(Path file) {
    try {
      return Files.exists(file) ? Files.readAllBytes(file) : null;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// There is no index or the old one, or the complete new one.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aPowerCutLeavesNoIndexOrAWholeOne(boolean older) throws IOException {
    if (older) {
      build(Libc.INSTANCE);
    }
    byte[] old = bytes(index);
    CrashReplay replay = CrashReplay.before(root);
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, root);
    buildAgain(calls);
    byte[] whole = Files.readAllBytes(index);
    assertThat(whole).isNotEqualTo(old);

    replay.everyCrash(
        calls.steps(),
        0,
        SEEDS,
        scratch,
        (where, tree) -> {
          byte[] found = bytes(tree.resolve(index.getFileName()));
          assertThat(Arrays.equals(found, old) || Arrays.equals(found, whole)).as(where).isTrue();
        });
    replay.everyCrash(
        calls.steps(),
        calls.steps().size(),
        SEEDS,
        scratch,
        (where, tree) ->
            assertThat(Arrays.equals(bytes(tree.resolve(index.getFileName())), whole))
                .as(where)
                .isTrue());
  }

  @ParameterizedTest
  @EnumSource
  void aFailureOfAnyCallLeavesWhatWasThereOrTheNewIndex(Function function) throws IOException {
    build(Libc.INSTANCE);
    byte[] old = Files.readAllBytes(index);
    FaultyFileCalls good = new FaultyFileCalls(Libc.INSTANCE);
    buildAgain(good);
    byte[] whole = Files.readAllBytes(index);
    for (int number = 1; number <= good.count(function); number++) {
      for (Errno errno : List.of(Errno.EIO, Errno.ENOSPC, Errno.EINTR)) {
        Files.write(index, old);
        requireOneOf(function, number, errno, old, whole);
        Files.delete(index);
        requireOneOf(function, number, errno, null, whole);
      }
    }
  }

  private void requireOneOf(
      Function function, int number, Errno errno, byte @Nullable [] before, byte[] whole) {
    String where = function + " " + number + " " + errno;
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).at(function, number, new Fails(errno));
    Throwable failure = catchThrowable(() -> buildAgain(calls));
    byte[] found = bytes(index);
    if (failure != null) {
      assertThat(failure).as(where).isInstanceOf(TransferException.class);
    }
    if (failure == null || !Arrays.equals(found, before)) {
      assertThat(found).as(where).isEqualTo(whole);
    }
    assertThat(root.toFile().list()).as(where).hasSize(found == null ? 1 : 2);
    assertThat(NoLeaks.held()).as(where).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void shortReadsAndWritesAreGoneOnWith() {
    build(Libc.INSTANCE);
    byte[] whole = bytes(index);
    build(
        new FaultyFileCalls(Libc.INSTANCE)
            .from(Function.PREAD, 1, new Shortens(100))
            .from(Function.PWRITE, 1, new Shortens(100)));
    assertThat(bytes(index)).isEqualTo(whole);
  }

  @Test
  void aFailureToMapLeavesNothingOpen() {
    build(Libc.INSTANCE);
    for (Function function : List.of(Function.OPEN, Function.STAT)) {
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE).at(function, 1, new Fails(Errno.EIO));
      try (GantrySession session = Sessions.over(calls)) {
        assertThat(catchThrowable(() -> TfRecordIndex.open(file, session)))
            .isInstanceOf(TransferException.class)
            .hasMessageContaining(index.toString());
        assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
        ((Usable) TfRecordIndex.open(file, session)).index().close();
      }
    }
  }
}
