// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.GantryException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.Arrays;
import java.util.stream.Stream;

/// A file that another program changes while it is read: before each of the reader's calls in turn. The reader gets all
/// of one version, or an error.
public final class ChangingFile {
  /// What the other program does.
  public enum Change {
    /// It cuts the file to a half.
    TRUNCATE,
    /// It appends the new version.
    GROW,
    /// It writes the new version over the old one.
    OVERWRITE,
    /// It renames another file to this one.
    REPLACE,
    DELETE
  }

  /// Reads the file, and gives what a program would get of it.
  public interface Reading {
    byte[] read(GantrySession session, Path file) throws IOException;
  }

  private ChangingFile() {}

  /// Changes the file at every step of its reading.
  ///
  /// @param before the file's bytes at first
  /// @param after another version of it
  public static void everywhere(Path file, byte[] before, byte[] after, Reading reading)
      throws IOException {
    byte[] second = whole(file, after, reading);
    // What has grown before it is opened may be a file of its own right, as a sequence of records
    // is.
    byte[] both = grown(file, before, after, reading);
    byte[] first = whole(file, before, reading);
    assertThat(first).isNotEqualTo(second);
    int steps = steps(file, reading);
    for (Change change : Change.values()) {
      for (int step = 1; step <= steps; step++) {
        write(file, before);
        FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
        calls.before(step, () -> change(file, change, after));
        String where = change + " before call " + step + " of " + steps;
        try (GantrySession session = Sessions.over(calls)) {
          byte[] got = reading.read(session, file);
          assertThat(Stream.of(first, second, both).anyMatch(whole -> Arrays.equals(got, whole)))
              .as(where)
              .isTrue();
        } catch (GantryException _) {
          // It says so.
        } catch (RuntimeException e) {
          throw new AssertionError(where, e);
        }
      }
    }
    write(file, before);
  }

  private static byte[] grown(Path file, byte[] before, byte[] after, Reading reading)
      throws IOException {
    byte[] all = Arrays.copyOf(before, before.length + after.length);
    System.arraycopy(after, 0, all, before.length, after.length);
    try {
      return whole(file, all, reading);
    } catch (GantryException _) {
      return whole(file, before, reading);
    }
  }

  private static int steps(Path file, Reading reading) throws IOException {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    try (GantrySession session = Sessions.over(calls)) {
      reading.read(session, file);
    }
    assertThat(calls.steps()).as("an open, a look at the file, a read, a close").isGreaterThan(4);
    return calls.steps();
  }

  private static byte[] whole(Path file, byte[] bytes, Reading reading) throws IOException {
    write(file, bytes);
    try (GantrySession session = GantrySession.open()) {
      return reading.read(session, file);
    }
  }

  /// Some time ago, since what happens within a tick of the kernel's clock has one time.
  private static void write(Path file, byte[] bytes) throws IOException {
    Files.deleteIfExists(file);
    Files.write(file, bytes);
    Files.setLastModifiedTime(file, FileTime.from(Instant.now().minusSeconds(10)));
  }

  private static void change(Path file, Change change, byte[] after) {
    try {
      switch (change) {
        case TRUNCATE -> {
          try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(after.length / 2);
          }
        }
        case GROW -> Files.write(file, after, StandardOpenOption.APPEND);
        case OVERWRITE -> {
          try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(after), 0);
            channel.truncate(after.length);
          }
        }
        case REPLACE -> {
          Path other = Files.write(file.resolveSibling("other"), after);
          Files.move(other, file, StandardCopyOption.ATOMIC_MOVE);
        }
        case DELETE -> Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
