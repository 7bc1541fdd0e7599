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

/// Changes a file, as another program could, before one of its reader's calls, for each call in
/// turn. The reader must get all bytes of one version, or an error.
public final class ChangingFile {
  /// A change of the file by another program.
  public enum Change {
    /// The program truncates the file to half of its size.
    TRUNCATE,
    /// The program appends the new version.
    GROW,
    /// The program writes the new version over the old one.
    OVERWRITE,
    /// The program renames another file to this file's name.
    REPLACE,
    DELETE
  }

  /// A reading of the file, which returns the bytes that a program would get.
  public interface Reading {
    byte[] read(GantrySession session, Path file) throws IOException;
  }

  /// A reading of a server's file, which returns the bytes that a program would get.
  public interface RemoteReading {
    byte[] read(Location file) throws IOException;
  }

  /// The distance between the calls before which a cached file is changed. The reader of a cache
  /// makes many calls, so a build tests some of them; `-Dgantry.cache.stride=1` tests each.
  private static final int CACHE_STRIDE = Integer.getInteger("gantry.cache.stride", 5);

  private ChangingFile() {}

  /// Changes the file before every call of its reading.
  ///
  /// @param before the bytes of the first version
  /// @param after the bytes of the second version
  public static void everywhere(Path file, byte[] before, byte[] after, Reading reading)
      throws IOException {
    byte[] second = whole(file, after, reading);
    // A file that has grown before it is opened may be valid, like a sequence of records.
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

  /// Changes one file of a cache's folder before calls of a reading. The reading gets bytes that
  /// the folder has lost elsewhere, so its result never changes.
  ///
  /// @param after the bytes of the changed file
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

  /// Makes a server run an action at one of its requests, which count from 1.
  private interface Arming {
    void at(int request, Runnable action);
  }

  /// Changes a server's file before each of the reading's requests.
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

  /// Changes a server's file in the middle of each answer: the server sends half of the answer and
  /// closes the connection, and the client's next request gets the other version.
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

  /// A reading during which a change is made before a call.
  private interface Attempt {
    byte[] read(Change change, int step) throws IOException;
  }

  /// @param stride the distance between the tested calls; each change begins at another call
  /// @param allowed the possible results of a reading that does not fail
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
          // The reading has reported the change.
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

  /// Writes a version whose modification time lies in the past, because all changes within one
  /// tick of the kernel's clock get the same time.
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
