package dev.gantry.core.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Gantry;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Sessions;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.io.Cancellation;
import dev.gantry.core.testing.FaultyFileCalls;
import dev.gantry.core.testing.FaultyFileCalls.After;
import dev.gantry.core.testing.FaultyFileCalls.Fails;
import dev.gantry.core.testing.FaultyFileCalls.Fault;
import dev.gantry.core.testing.FaultyFileCalls.Function;
import dev.gantry.core.testing.FaultyFileCalls.Returns;
import dev.gantry.core.testing.FaultyFileCalls.Shortens;
import dev.gantry.core.testing.NoLeaks;
import dev.gantry.core.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Writes that fail, at every call and in every way, are cancelled or interrupted: the first cause
/// is told, the old files are whole, and nothing stays.
@ExtendWith(NoLeaks.class)
class WriteFaultTest {
  private static final List<String> NAMES = List.of("first", "sub/second", "added", "emptied");
  private static final int ADDED = 2;
  private static final List<byte[]> OLD =
      List.of(
          TestFiles.bytes(1, 9000),
          TestFiles.bytes(2, 20_000),
          new byte[0],
          TestFiles.bytes(4, 10));
  private static final byte[] SHARED = TestFiles.bytes(5, 12_000);
  private static final List<byte[]> NEW =
      List.of(
          concat(TestFiles.bytes(11, 12_288), SHARED),
          TestFiles.bytes(12, 20_001),
          concat(SHARED, TestFiles.bytes(13, 100)),
          new byte[0]);

  /// These calls are made again after `EINTR`: for good, that would be for ever.
  private static final Set<Function> RETRIED =
      EnumSet.of(
          Function.OPEN, Function.PREAD, Function.PWRITE, Function.FTRUNCATE, Function.FALLOCATE);

  @TempDir Path folder;
  private Path source;

  @BeforeEach
  void oldFiles() throws IOException {
    Files.createDirectory(folder.resolve("sub"));
    source = TestFiles.write(folder.resolve("source"), 5, SHARED.length);
    restore();
  }

  private void restore() {
    try {
      for (int i = 0; i < NAMES.size(); i++) {
        if (i == ADDED) {
          Files.deleteIfExists(path(i));
        } else {
          Files.write(path(i), OLD.get(i));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static byte[] concat(byte[] first, byte[] second) {
    byte[] both = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, both, first.length, second.length);
    return both;
  }

  private Path path(int file) {
    return folder.resolve(NAMES.get(file));
  }

  private static Source memory(byte[] bytes, int from, int to) {
    return new Source.HostMemory(MemorySegment.ofArray(bytes).asSlice(from, to - from));
  }

  private List<NewFile> files() {
    Source shared = new Source.FilePart(new Extent(source, 0, SHARED.length));
    return List.of(
        new NewFile(path(0), List.of(memory(NEW.get(0), 0, 12_288), shared)),
        new NewFile(path(1), List.of(memory(NEW.get(1), 0, 20_001))),
        new NewFile(path(2), List.of(shared, memory(NEW.get(2), SHARED.length, NEW.get(2).length))),
        new NewFile(path(3), List.of()));
  }

  private static WriteOptions options(int threads) {
    return WriteOptions.defaults().withRequestBytes(8192).withThreads(threads);
  }

  private WriteReport write(FaultyFileCalls calls, WriteOptions options) {
    try (Gantry gantry = Sessions.over(calls)) {
      return gantry.write(files(), options);
    }
  }

  private static FaultyFileCalls calls() {
    return new FaultyFileCalls(Libc.INSTANCE);
  }

  private static TransferException failureOf(ThrowingCallable call) {
    return catchThrowableOfType(TransferException.class, call);
  }

  private byte @Nullable [] found(int file) {
    try {
      return Files.exists(path(file)) ? Files.readAllBytes(path(file)) : null;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void assertNew(int file, String where) {
    assertThat(Arrays.equals(found(file), NEW.get(file)))
        .as("%s is new: %s", NAMES.get(file), where)
        .isTrue();
  }

  private void assertOld(int file, String where) {
    byte[] expected = file == ADDED ? null : OLD.get(file);
    assertThat(Arrays.equals(found(file), expected))
        .as("%s is old: %s", NAMES.get(file), where)
        .isTrue();
  }

  /// The first so many files are new, the others are old.
  private void assertFiles(int renamed, String where) {
    for (int i = 0; i < NAMES.size(); i++) {
      if (i < renamed) {
        assertNew(i, where);
      } else {
        assertOld(i, where);
      }
    }
  }

  private void assertNothingIsLeft(String where) {
    assertThat(temporaries()).as(where).isEmpty();
    try {
      assertThat(NoLeaks.openFiles()).as(where).isEmpty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private List<Path> temporaries() {
    try (Stream<Path> paths = Files.walk(folder)) {
      return paths.filter(TemporaryName::is).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

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

  /// Files are opened for direct writes, too, and asked for their alignment: nobody needs either.
  /// The first is the source, which must be opened, and asked for its size.
  private static boolean isSpare(Function function, int number) {
    return number > 1 && (function == Function.OPEN || function == Function.STAT);
  }

  /// How many files have their new names after a failure.
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
    try (Gantry gantry = Gantry.open()) {
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
    try (Gantry gantry = Sessions.over(calls)) {
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
    try (Gantry gantry = Gantry.open()) {
      Source source = memory(SHARED, 0, 100);
      NewFile file = new NewFile(path(0), List.of(source));
      NewFile again = new NewFile(folder.resolve("sub/../first"), List.of(source));
      assertThatThrownBy(() -> gantry.write(List.of(file, again), options(1)))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("first");
    }
    assertFiles(0, "");
  }

  @ParameterizedTest
  @EnumSource(names = {"PWRITE", "FTRUNCATE", "FSYNC"})
  void cancelledInMidWay(Function function) {
    FaultyFileCalls good = calls();
    WriteReport _ = write(good, options(1));
    int before = function == Function.FSYNC ? NAMES.size() : good.count(function);
    for (int number = 1; number <= before; number++) {
      restore();
      Cancellation cancellation = new Cancellation();
      FaultyFileCalls calls = calls().at(function, number, new After(cancellation::cancel));
      String where = function + " " + number;
      TransferException failure =
          failureOf(() -> write(calls, options(1).withCancellation(cancellation)));
      assertThat(failure).as(where).isNotNull();
      assertThat(failure.failure()).as(where).isEqualTo(new Failure.Cancelled());
      assertFiles(0, where);
      assertNothingIsLeft(where);
    }
  }

  @Test
  void aCancellationAfterTheFirstNameComesTooLate() {
    Cancellation cancellation = new Cancellation();
    FaultyFileCalls calls = calls().at(Function.RENAME, 1, new After(cancellation::cancel));
    WriteReport _ = write(calls, options(1).withCancellation(cancellation));
    assertFiles(NAMES.size(), "");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void cancelledOrInterruptedBeforeItBeganThoughNothingIsToBeWritten(boolean interrupted) {
    Cancellation cancellation = new Cancellation();
    if (interrupted) {
      Thread.currentThread().interrupt();
    } else {
      cancellation.cancel();
    }
    TransferException failure;
    try (Gantry gantry = Gantry.open()) {
      failure =
          failureOf(() ->
              gantry.write(
                  List.of(new NewFile(path(3), List.of())),
                  options(1).withCancellation(cancellation)));
    }
    assertThat(Thread.interrupted()).isEqualTo(interrupted);
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    assertFiles(0, "");
    assertNothingIsLeft("");
  }

  @Test
  void interruptedInMidWay() {
    Thread caller = Thread.currentThread();
    FaultyFileCalls calls =
        calls()
            .at(
                Function.PWRITE,
                2,
                new After(() -> {
                  caller.interrupt();
                  // Until the caller, who waits, has taken notice.
                  while (caller.isInterrupted()) {
                    Thread.onSpinWait();
                  }
                }));
    TransferException failure = failureOf(() -> write(calls, options(1)));
    assertThat(Thread.interrupted()).as("still interrupted").isTrue();
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    assertFiles(0, "");
    assertNothingIsLeft("");
  }

  /// Whenever it throws: in mid-way, or when it hears that all is written.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aListenerThatThrows(boolean atTheEnd) {
    CompletableFuture<Void> thrown = new CompletableFuture<>();
    IllegalStateException mine = new IllegalStateException("mine");
    FaultyFileCalls calls = calls();
    if (!atTheEnd) {
      calls.at(Function.PWRITE, 2, new After(thrown::join));
    }
    WriteOptions options =
        options(1)
            .withProgress((done, total) -> {
              if (!atTheEnd || done == total) {
                thrown.complete(null);
                throw mine;
              }
            });
    assertThat(catchThrowable(() -> write(calls, options))).isSameAs(mine);
    assertFiles(0, "");
    assertNothingIsLeft("");
  }

  /// What is read is the old file, though its name is written.
  @Test
  void aFileOfItsOwnOldBytes() throws IOException {
    try (Gantry gantry = Gantry.open()) {
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
