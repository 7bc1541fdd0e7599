// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.MemoryFolder;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Processes that end within the commit of a set: readers find the old set, the new one, or none.
@ExtendWith(NoLeaks.class)
class JointKillTest {
  private static final int HALTED = 7;
  private static final int PARTS = 2;
  private static final int OLD = 2;
  private static final int NEW = 5;

  @TempDir(factory = MemoryFolder.class)
  Path folder;

  /// The writers of one set by several processes, and what readers find. Samples count as bytes here.
  enum Writer {
    FILES {
      @Override
      void write(GantrySession session, Path set, int samples) {
        String job = UUID.randomUUID().toString();
        try (JointFiles joint = JointFiles.begin(session, set, true)) {
          for (int i = 0; i < PARTS; i++) {
            try (AppendedFile file =
                session.append(JointFiles.unfinished(set).resolve("part-" + i))) {
              file.append(MemorySegment.ofArray(new byte[samples]));
              AppendedFile.commit(List.of(file));
            }
          }
          List<Path> _ =
              joint.finish(
                  IntStream.range(0, PARTS)
                      .mapToObj(i -> JointFiles.Part.of("part-" + i, i, PARTS, job, ".tfrecord"))
                      .toList());
        }
      }

      @Override
      long read(Path set) throws IOException {
        long samples = 0;
        for (Location file : JointFiles.of(Folder.at(Location.of(set)).orElseThrow())) {
          samples += Files.size(file.path());
        }
        return samples;
      }
    },
    SHARDS {
      @Override
      void write(GantrySession session, Path set, int samples) {
        try (JointShards joint = JointShards.begin(session, set, true)) {
          for (int i = 0; i < PARTS; i++) {
            try (ShardWriter writer =
                JointShards.part(
                    session, set, "p" + i, TestShards.FIELDS, ShardOptions.defaults())) {
              TestShards.append(
                  writer, TestShards.values(TestShards.FIELDS, samples, samples), samples);
              ShardSet _ = writer.finish();
            }
          }
          ShardSet _ =
              joint.finish(TestShards.FIELDS, List.of("p0", "p1"), ShardOptions.defaults());
        }
      }

      @Override
      long read(Path set) {
        ShardSet shards = ShardSet.open(set);
        shards.verify();
        return shards.samples();
      }
    };

    abstract void write(GantrySession session, Path set, int samples);

    abstract long read(Path set) throws IOException;
  }

  static Stream<Arguments> moments() {
    return Stream.of(Writer.values())
        .flatMap(writer ->
            Stream.of(false, true)
                .flatMap(isOver ->
                    IntStream.rangeClosed(2, PARTS + 2)
                        .mapToObj(moment -> Arguments.of(writer, isOver, moment))));
  }

  @ParameterizedTest
  @MethodSource("moments")
  void whatAKilledCommitLeavesIsAWholeSetOrNone(Writer writer, boolean isOver, int moment)
      throws IOException, InterruptedException {
    Path set = folder.resolve("set");
    try (GantrySession session = GantrySession.open()) {
      if (isOver) {
        writer.write(session, set, OLD);
      }
      halt(writer, set, moment);

      Optional<Long> found = found(writer, set);
      if (moment > PARTS + 1) {
        assertThat(found).hasValue((long) PARTS * NEW);
      } else if (isOver) {
        assertThat(found).hasValue((long) PARTS * OLD);
      } else {
        assertThat(found).isEmpty();
      }

      writer.write(session, set, 1);
      assertThat(found(writer, set)).hasValue((long) PARTS);
      try (Stream<Path> left = Files.list(set)) {
        assertThat(left).hasSize(PARTS + 1);
      }
    }
  }

  private static Optional<Long> found(Writer writer, Path set) throws IOException {
    try {
      return Optional.of(writer.read(set));
    } catch (MalformedFileException e) {
      assertThat(e.kind()).isIn("no-list", "no-shards");
      return Optional.empty();
    }
  }

  private static void halt(Writer writer, Path set, int moment)
      throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xmx128m",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Halting.class.getName(),
                writer.name(),
                set.toString(),
                Integer.toString(moment))
            .redirectErrorStream(true)
            .redirectOutput(Redirect.INHERIT)
            .start();
    try {
      assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
      assertThat(process.exitValue()).isEqualTo(HALTED);
    } finally {
      process.destroyForcibly();
    }
  }

  /// Arguments: the writer, the folder, and the file of the set before whose name this ends; one more
  /// than there are for the end after the last.
  static final class Halting {
    private Halting() {}

    public static void main(String[] arguments) {
      Path set = Path.of(arguments[1]);
      FileCalls calls = new EndsAtARename(set, Integer.parseInt(arguments[2]));
      try (GantrySession session = Sessions.over(calls)) {
        Writer.valueOf(arguments[0]).write(session, set, NEW);
      }
    }
  }

  private static final class EndsAtARename extends ForwardingFileCalls {
    private final Path set;
    private int left;

    EndsAtARename(Path set, int left) {
      super(Libc.INSTANCE);
      this.set = set;
      this.left = left;
    }

    @Override
    public int rename(Path from, Path to) {
      if (set.equals(to.getParent()) && --left == 0) {
        Runtime.getRuntime().halt(HALTED);
      }
      return super.rename(from, to);
    }

    /// The first one after the set is there.
    @Override
    public int unlink(Path file) {
      if (left == 1) {
        Runtime.getRuntime().halt(HALTED);
      }
      return super.unlink(file);
    }
  }
}
