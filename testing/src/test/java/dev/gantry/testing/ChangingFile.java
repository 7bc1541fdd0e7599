// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.RangeServer.Answer;
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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/// A file that another program changes while it is read: before each of the reader's calls in turn. The reader gets all
/// of one version, or an error.
public final class ChangingFile {
  /// The other program's change of the file.
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

  /// Reads a file of a server, and gives what a program would get of it.
  public interface RemoteReading {
    byte[] read(Location file) throws IOException;
  }

  /// A cache's reader makes many calls: a build changes its files before some of them, and `-Dgantry.cache.stride=1` before
  /// each.
  private static final int CACHE_STRIDE = Integer.getInteger("gantry.cache.stride", 5);

  private ChangingFile() {}

  /// Changes the file at every step of its reading.
  ///
  /// @param before the file's bytes at first
  /// @param after another version of it
  public static void everywhere(Path file, byte[] before, byte[] after, Reading reading)
      throws IOException {
    byte[] second = whole(file, after, reading);
    // A file that has grown before it is opened may be valid in its own right, as a sequence of
    // records is.
    byte[] both = grown(file, before, after, reading);
    byte[] first = whole(file, before, reading);
    assertThat(first).isNotEqualTo(second);
    everyStep(
        EnumSet.allOf(Change.class),
        steps(calls -> read(calls, file, reading)),
        1,
        List.of(first, second, both),
        (change, step) -> {
          write(file, before);
          FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
          calls.before(step, () -> change(file, change, after));
          return read(calls, file, reading);
        });
    write(file, before);
  }

  /// Changes one of a folder's files at steps of a reading that gets its bytes elsewhere where the folder does not
  /// have them any more: it always gets the same.
  ///
  /// @param after what the file is changed to
  public static void inCache(Path file, byte[] after, Set<Change> changes, Reading reading)
      throws IOException {
    KeptFolder kept = KeptFolder.of(file.getParent());
    byte[] right = read(new FaultyFileCalls(Libc.INSTANCE), file, reading);
    kept.restore();
    int steps = steps(calls -> read(calls, file, reading));
    everyStep(
        changes,
        steps,
        CACHE_STRIDE,
        List.of(right),
        (change, step) -> {
          kept.restore();
          FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
          calls.before(step, () -> change(file, change, after));
          return read(calls, file, reading);
        });
    kept.restore();
  }

  /// Has a server run an action at its request of this number, from 1.
  private interface Arming {
    void at(int request, Runnable action);
  }

  /// Changes a server's file before it answers each of the requests.
  public static void onServer(
      RangeServer server, String name, byte[] before, byte[] after, RemoteReading reading)
      throws IOException {
    onServer(
        server,
        name,
        before,
        after,
        EnumSet.allOf(Change.class),
        reading,
        (request, action) -> {
          AtomicInteger requests = new AtomicInteger();
          server.before(_ -> {
            if (requests.incrementAndGet() == request) {
              action.run();
            }
            return false;
          });
        });
    server.before(_ -> false);
  }

  /// Changes a server's file within each of its answers: half of an answer comes, then the connection ends, and what the
  /// client asks for next is of the other version.
  public static void withinAnswers(
      RangeServer server, String name, byte[] before, byte[] after, RemoteReading reading)
      throws IOException {
    onServer(
        server,
        name,
        before,
        after,
        EnumSet.of(Change.OVERWRITE),
        reading,
        (request, action) -> {
          server.answer(number -> number == request - 1 ? Answer.HALF : Answer.RIGHT);
          server.afterHalf(action);
        });
    server.answerAll(Answer.RIGHT);
    server.afterHalf(() -> {});
  }

  private static void onServer(
      RangeServer server,
      String name,
      byte[] before,
      byte[] after,
      Set<Change> changes,
      RemoteReading reading,
      Arming arming)
      throws IOException {
    byte[] half = Arrays.copyOf(before, before.length / 2);
    List<byte[]> wholes = new ArrayList<>();
    for (byte[] version : List.of(before, after, join(before, after), half)) {
      Location file = server.put(name, version);
      wholes.add(reading.read(file));
    }
    int first = server.requests();
    byte[] _ = reading.read(server.put(name, before));
    int steps = server.requests() - first;
    assertThat(steps).as("requests").isGreaterThan(2);
    everyStep(
        changes,
        steps,
        1,
        wholes,
        (change, step) -> {
          Location file = server.put(name, before);
          arming.at(step, () -> change(server, name, change, before, after));
          return reading.read(file);
        });
  }

  /// One reading, during which a change is made before a step.
  private interface Attempt {
    byte[] read(Change change, int step) throws IOException;
  }

  /// @param stride 1 for each step; a larger one for fewer, which differ among the changes
  /// @param allowed what a reading may get, unless it fails
  private static void everyStep(
      Set<Change> changes, int steps, int stride, List<byte[]> allowed, Attempt attempt)
      throws IOException {
    int first = 0;
    for (Change change : changes) {
      first = 1 + first % stride;
      for (int step = first; step <= steps; step += stride) {
        String where = change + " before call " + step + " of " + steps;
        try {
          byte[] got = attempt.read(change, step);
          assertThat(allowed.stream().anyMatch(whole -> Arrays.equals(got, whole)))
              .as(where)
              .isTrue();
        } catch (GantryException _) {
          // It says so.
        } catch (RuntimeException e) {
          throw new AssertionError(where, e);
        }
      }
    }
  }

  private static byte[] grown(Path file, byte[] before, byte[] after, Reading reading)
      throws IOException {
    try {
      return whole(file, join(before, after), reading);
    } catch (GantryException _) {
      return whole(file, before, reading);
    }
  }

  private static byte[] join(byte[] before, byte[] after) {
    byte[] all = Arrays.copyOf(before, before.length + after.length);
    System.arraycopy(after, 0, all, before.length, after.length);
    return all;
  }

  private static byte[] read(FaultyFileCalls calls, Path file, Reading reading) throws IOException {
    try (GantrySession session = Sessions.over(calls)) {
      return reading.read(session, file);
    }
  }

  private interface Counted {
    byte[] read(FaultyFileCalls calls) throws IOException;
  }

  private static int steps(Counted reading) throws IOException {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    byte[] _ = reading.read(calls);
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

  private static void change(
      RangeServer server, String name, Change change, byte[] before, byte[] after) {
    switch (change) {
      case TRUNCATE -> server.put(name, Arrays.copyOf(before, before.length / 2));
      case GROW -> server.put(name, join(before, after));
      case OVERWRITE, REPLACE -> server.put(name, after);
      case DELETE -> server.remove(name);
    }
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
