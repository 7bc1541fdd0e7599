// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Fault;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Returns;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Writes in which each call fails in each way: the failure names the first cause, the old files
/// are complete, and no resource is left.
class WriteFaultTest extends OldAndNewFiles {
  /// The calls that are repeated after `EINTR`. A call that always fails with it would be repeated
  /// for ever.
  private static final Set<Function> RETRIED =
      EnumSet.of(
          Function.OPEN, Function.PREAD, Function.PWRITE, Function.FTRUNCATE, Function.FALLOCATE);

  @ParameterizedTest
  @EnumSource
  void everyCallFailsInEveryWayOnceAndForGood(Function function) {
    FaultyFileCalls good = calls();
    WriteReport _ = write(good, options(1));
    assertFiles(NAMES.size(), "without a fault");
    for (int number = 1; number <= good.count(function); number++) {
      for (Fault fault :
          List.of(
              new Fails(Errno.EIO),
              new Fails(Errno.ENOSPC),
              new Fails(Errno.EINTR),
              new Shortens(1000),
              new Returns(1000))) {
        tryOut(function, number, fault, false);
        tryOut(function, number, fault, true);
      }
    }
  }

  private void tryOut(Function function, int number, Fault fault, boolean forGood) {
    boolean retried = fault.equals(new Fails(Errno.EINTR)) && RETRIED.contains(function);
    String where = function + " " + number + " " + fault + (forGood ? " from then on" : " once");
    restore();
    FaultyFileCalls calls = calls();
    if (!forGood) {
      calls.at(function, number, fault);
    } else if (retried) {
      for (int again = 0; again < 9; again++) {
        calls.at(function, number + again, fault);
      }
    } else {
      calls.from(function, number, fault);
    }
    TransferException failure = failureOf(() -> write(calls, options(1)));
    if (failure == null) {
      assertFiles(NAMES.size(), where);
    } else {
      assertThat(fault).as(where).isInstanceOf(Fails.class);
      assertThat(failure.failure()).as(where).isEqualTo(Errno.failure(code(fault)));
      assertThat(failure.getSuppressed()).as(where).isEmpty();
      assertFiles(renamed(failure, calls), where);
    }
    boolean harmless = !(fault instanceof Fails) || retried || function == Function.CLOSE;
    boolean mayBeWell = harmless || isSpare(function, number);
    assertThat(failure == null ? mayBeWell : !harmless).as(where).isTrue();
    assertNothingIsLeft(where);

    if (!forGood) {
      WriteReport _ = write(calls(), options(1));
      assertFiles(NAMES.size(), "the next write after " + where);
    }
  }

  private static int code(Fault fault) {
    return fault instanceof Fails(Errno errno) ? errno.code() : 0;
  }

  /// The calls that a write does not need: it works without locks on a file system that has none,
  /// for example.
  private static final Set<Function> SPARE =
      EnumSet.of(Function.FILE_SYSTEM, Function.LOCK, Function.MAX_DESCRIPTORS);

  /// Returns whether a write succeeds without a call. The first open and the first stat are those
  /// of the source, which the write needs; the later ones serve direct writes, which it can do
  /// without.
  private static boolean isSpare(Function function, int number) {
    return SPARE.contains(function)
        || (number > 1 && (function == Function.OPEN || function == Function.STAT));
  }

  /// Returns how many files had their new names when a write failed.
  private static int renamed(TransferException failure, FaultyFileCalls calls) {
    int tried = calls.count(Function.RENAME);
    if (failure.operation().equals("rename")) {
      return tried - 1;
    }
    assertThat(tried).isIn(0, NAMES.size());
    if (tried > 0) {
      assertThat(failure.operation()).as("with the folder").isIn("open", "fsync");
    }
    return tried;
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
  void anythingMayGoWrongAtAnyTimeWithSeveralWriters(long seed) {
    FaultyFileCalls calls =
        calls()
            .seeded(Function.PWRITE, seed, 15, new Fails(Errno.EIO))
            .seeded(Function.PWRITE, seed, 3, new Shortens(1000))
            .seeded(Function.PREAD, seed, 4, new Fails(Errno.EINTR))
            .seeded(Function.PREAD, seed, 20, new Fails(Errno.EIO))
            .seeded(Function.FALLOCATE, seed, 15, new Fails(Errno.ENOSPC))
            .seeded(Function.OPEN, seed, 15, new Fails(Errno.EMFILE))
            .seeded(Function.FSYNC, seed, 15, new Fails(Errno.EIO))
            .seeded(Function.RENAME, seed, 15, new Fails(Errno.EIO));
    TransferException failure = failureOf(() -> write(calls, options(4)));
    String where = "seed " + seed + ": " + failure;
    assertFiles(failure == null ? NAMES.size() : renamed(failure, calls), where);
    assertNothingIsLeft(where);
  }

  @Test
  void aTemporaryFileThatCannotBeRemovedIsToldBesides() {
    FaultyFileCalls calls =
        calls()
            .at(Function.PWRITE, 1, new Fails(Errno.ENOSPC))
            .from(Function.UNLINK, 1, new Fails(Errno.EROFS));
    TransferException failure = failureOf(() -> write(calls, options(1)));
    assertThat(failure.failure()).isEqualTo(Errno.failure(Errno.ENOSPC.code()));
    assertThat(failure.getSuppressed())
        .singleElement()
        .asString()
        .contains("unlink failed", "EROFS");
    assertFiles(0, "");
    assertThat(temporaries()).hasSize(1);
  }

  @Test
  void noWriterGoesOnWithAFileThatHasNoRoom() {
    FaultyFileCalls calls = calls().from(Function.FALLOCATE, 1, new Fails(Errno.ENOSPC));
    TransferException failure = failureOf(() -> write(calls, options(8)));
    assertThat(failure.operation()).isEqualTo("fallocate");
    assertThat(calls.count(Function.PWRITE)).isZero();
    assertFiles(0, "");
  }

  @Test
  void oneFolderOfSeveralThatIsNotThere() throws IOException {
    try (GantrySession gantry = GantrySession.open()) {
      Path missing = folder.resolve("missing/file");
      Source source = memory(SHARED, 0, 100);
      assertThatThrownBy(() ->
              gantry.write(
                  List.of(
                      new NewFile(path(0), List.of(source)), new NewFile(missing, List.of(source))),
                  options(1)))
          .isInstanceOf(TransferException.class)
          .hasMessage("open failed: %s: errno 2 ENOENT: No such file or directory", missing);
    }
    assertFiles(0, "");
    assertNothingIsLeft("");
  }

  @Test
  void aSourceThatIsTooShortIsFoundBeforeAnythingIsMade() {
    FaultyFileCalls calls = calls();
    try (GantrySession gantry = Sessions.over(calls)) {
      Source tooLong = new Source.FilePart(new Extent(source, 10, SHARED.length));
      assertThat(
              failureOf(() ->
                      gantry.write(List.of(new NewFile(path(0), List.of(tooLong))), options(1)))
                  .failure())
          .isEqualTo(new Failure.EndOfFile(10));
    }
    assertThat(calls.count(Function.OPEN)).isEqualTo(1);
    assertFiles(0, "");
  }

  @Test
  void aSourceThatShrinksMeanwhile() {
    FaultyFileCalls calls =
        calls()
            .at(
                Function.PREAD,
                1,
                new After(() -> {
                  try {
                    Files.write(source, new byte[10]);
                  } catch (IOException e) {
                    throw new UncheckedIOException(e);
                  }
                }));
    assertThat(failureOf(() -> write(calls, options(1))).failure())
        .isInstanceOf(Failure.EndOfFile.class);
    assertFiles(0, "");
    assertNothingIsLeft("");
  }

  @Test
  void theSameFileTwice() {
    try (GantrySession gantry = GantrySession.open()) {
      Source source = memory(SHARED, 0, 100);
      NewFile file = new NewFile(path(0), List.of(source));
      NewFile again = new NewFile(folder.resolve("sub/../first"), List.of(source));
      assertThatThrownBy(() -> gantry.write(List.of(file, again), options(1)))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("first");
    }
    assertFiles(0, "");
  }

  /// The new file has the name of the old file, whose parts it copies.
  @Test
  void aFileOfItsOwnOldBytes() throws IOException {
    try (GantrySession gantry = GantrySession.open()) {
      WriteReport _ =
          gantry.write(
              List.of(
                  new NewFile(
                      path(1),
                      List.of(
                          new Source.FilePart(new Extent(path(1), 10_000, 10_000)),
                          new Source.FilePart(new Extent(path(1), 0, 10_000))))),
              options(2));
    }
    byte[] old = OLD.get(1);
    assertThat(Files.readAllBytes(path(1)))
        .isEqualTo(concat(Arrays.copyOfRange(old, 10_000, 20_000), Arrays.copyOf(old, 10_000)));
  }
}
