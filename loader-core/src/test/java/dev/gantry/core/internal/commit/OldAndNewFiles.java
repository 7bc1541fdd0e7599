// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Old files, a write that replaces some of them and adds one, and the files that must be found
/// afterwards.
@ExtendWith(NoLeaks.class)
abstract class OldAndNewFiles {
  static final List<String> NAMES = List.of("first", "sub/second", "added", "emptied");
  static final int ADDED = 2;
  static final List<byte[]> OLD =
      List.of(
          TestFiles.bytes(1, 9000),
          TestFiles.bytes(2, 20_000),
          new byte[0],
          TestFiles.bytes(4, 10));
  static final byte[] SHARED = TestFiles.bytes(5, 12_000);
  static final List<byte[]> NEW =
      List.of(
          concat(TestFiles.bytes(11, 12_288), SHARED),
          TestFiles.bytes(12, 20_001),
          concat(SHARED, TestFiles.bytes(13, 100)),
          new byte[0]);

  @TempDir Path folder;
  Path source;

  @BeforeEach
  void oldFiles() throws IOException {
    Files.createDirectory(folder.resolve("sub"));
    source = TestFiles.write(folder.resolve("source"), 5, SHARED.length);
    restore();
  }

  void restore() {
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

  static byte[] concat(byte[] first, byte[] second) {
    byte[] both = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, both, first.length, second.length);
    return both;
  }

  Path path(int file) {
    return folder.resolve(NAMES.get(file));
  }

  static Source memory(byte[] bytes, int from, int to) {
    return new Memory.OnHost(MemorySegment.ofArray(bytes).asSlice(from, to - from));
  }

  List<NewFile> files() {
    Source shared = new Source.FilePart(new Extent(source, 0, SHARED.length));
    return List.of(
        new NewFile(path(0), List.of(memory(NEW.get(0), 0, 12_288), shared)),
        new NewFile(path(1), List.of(memory(NEW.get(1), 0, 20_001))),
        new NewFile(path(2), List.of(shared, memory(NEW.get(2), SHARED.length, NEW.get(2).length))),
        new NewFile(path(3), List.of()));
  }

  static WriteOptions options(int threads) {
    return WriteOptions.defaults().withRequestBytes(8192).withThreads(threads);
  }

  WriteReport write(FaultyFileCalls calls, WriteOptions options) {
    try (GantrySession gantry = Sessions.over(calls)) {
      return gantry.write(files(), options);
    }
  }

  static FaultyFileCalls calls() {
    return new FaultyFileCalls(Libc.INSTANCE);
  }

  static TransferException failureOf(ThrowingCallable call) {
    return catchThrowableOfType(TransferException.class, call);
  }

  byte @Nullable [] found(int file) {
    try {
      return Files.exists(path(file)) ? Files.readAllBytes(path(file)) : null;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  void assertNew(int file, String where) {
    assertThat(Arrays.equals(found(file), NEW.get(file)))
        .as("%s is new: %s", NAMES.get(file), where)
        .isTrue();
  }

  void assertOld(int file, String where) {
    byte[] expected = file == ADDED ? null : OLD.get(file);
    assertThat(Arrays.equals(found(file), expected))
        .as("%s is old: %s", NAMES.get(file), where)
        .isTrue();
  }

  /// Checks that the first `renamed` files are new and the others are old.
  void assertFiles(int renamed, String where) {
    for (int i = 0; i < NAMES.size(); i++) {
      if (i < renamed) {
        assertNew(i, where);
      } else {
        assertOld(i, where);
      }
    }
  }

  void assertNothingIsLeft(String where) {
    assertThat(temporaries()).as(where).isEmpty();
    try {
      assertThat(NoLeaks.openFiles()).as(where).isEmpty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  List<Path> temporaries() {
    try (Stream<Path> paths = Files.walk(folder)) {
      return paths.filter(TemporaryName::is).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
