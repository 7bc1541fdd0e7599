// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.internal.files.FileList;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.safetensors.DataFileOptions;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Processes that end within the commit of several files. Readers find the old set, the new set,
/// or none.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class JointKillTest {
  private static final int HALTED = 7;
  private static final int PARTS = 2;
  private static final int OLD = 2;
  private static final int NEW = 5;

  @TempDir(factory = MemoryFolder.class)
  Path folder;

  /// The writers of a set by several processes, and the readers of that set. For files, each byte
  /// counts as a sample.
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
        for (Location file :
            FileList.files(Folder.at(GantrySession.shared(), Location.of(set)).orElseThrow())) {
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
    },
    /// The user chooses the names, so the old set must go before the new files get their names.
    RECORDS {
      @Override
      void write(GantrySession session, Path set, int samples) {
        try (TfRecordShards shards =
            TfRecordShards.create(session, set, "train", PARTS, Compression.NONE)) {
          for (int i = 0; i < PARTS * samples; i++) {
            shards.write(i % PARTS, MemorySegment.ofArray(new byte[1]));
          }
          shards.commit();
        }
      }

      @Override
      long read(Path set) {
        long samples = 0;
        for (Location file :
            FileList.files(Folder.at(GantrySession.shared(), Location.of(set)).orElseThrow())) {
          try (TfRecordReader reader =
              TfRecordReader.open(file.path(), TfRecordOptions.defaults())) {
            while (reader.next()) {
              samples++;
            }
          }
        }
        return samples;
      }
    },
    /// This writer replaces no set.
    NEW_SHARDS {
      @Override
      void write(GantrySession session, Path set, int samples) {
        ShardOptions options = ShardOptions.defaults().withSamplesPerShard(samples);
        try (ShardWriter writer = ShardWriter.create(session, set, TestShards.FIELDS, options)) {
          int all = PARTS * samples;
          TestShards.append(writer, TestShards.values(TestShards.FIELDS, samples, all), all);
          ShardSet _ = writer.finish();
        }
      }

      @Override
      long read(Path set) throws IOException {
        return SHARDS.read(set);
      }
    },
    /// This writer replaces no weights, so its user clears the folder first.
    WEIGHTS {
      @Override
      void write(GantrySession session, Path set, int samples) {
        FolderEntries.of(set).stream()
            .filter(file -> !file.getFileName().toString().startsWith("."))
            .forEach(session.folders()::removeFile);
        List<NewTensor> tensors =
            IntStream.range(0, PARTS)
                .mapToObj(i ->
                    new NewTensor(
                        "w" + i,
                        DType.U8,
                        TensorShape.of(samples),
                        new Memory.OnHost(MemorySegment.ofArray(new byte[samples]))))
                .toList();
        var _ =
            NewSafetensors.folder(
                    set, tensors, Map.of(), DataFileOptions.defaults().withFileBytes(1))
                .write(session, WriteOptions.defaults());
      }

      @Override
      long read(Path set) {
        return WeightsFormats.open(GantrySession.shared(), Location.of(set)).totalBytes();
      }
    };

    abstract void write(GantrySession session, Path set, int samples);

    abstract long read(Path set) throws IOException;

    boolean replaces() {
      return this == FILES || this == SHARDS || this == RECORDS;
    }
  }

  static Stream<Arguments> writers() {
    return Stream.of(Writer.values())
        .flatMap(writer ->
            Stream.of(false, true)
                .filter(isOver -> !isOver || writer.replaces())
                .map(isOver -> Arguments.of(writer, isOver)));
  }

  @ParameterizedTest
  @MethodSource("writers")
  void whatAKilledCommitLeavesIsAWholeSetOrNone(Writer writer, boolean isOver)
      throws IOException, InterruptedException {
    try (GantrySession session = GantrySession.open()) {
      boolean isHalted = true;
      for (int moment = 1; isHalted; moment++) {
        Path set = folder.resolve("set" + moment);
        if (isOver) {
          writer.write(session, set, OLD);
        }
        isHalted = halts(writer, set, moment);

        Optional<Long> found = found(writer, set);
        if (!isHalted) {
          assertThat(found).hasValue((long) PARTS * NEW);
        } else if (found.isPresent()) {
          assertThat(found.get()).isIn((long) PARTS * OLD, (long) PARTS * NEW);
        } else {
          assertThat(isOver && writer != Writer.RECORDS).as("the old set stays").isFalse();
        }

        if (isHalted || writer.replaces()) {
          writer.write(session, set, 1);
          assertThat(found(writer, set)).hasValue((long) PARTS);
          try (Stream<Path> left = Files.list(set)) {
            assertThat(left).hasSize(PARTS + 1);
          }
        }
      }
    }
  }

  private static Optional<Long> found(Writer writer, Path set) throws IOException {
    try {
      // An empty folder counts as no set.
      return Optional.of(writer.read(set)).filter(samples -> samples > 0);
    } catch (MalformedFileException e) {
      assertThat(e).hasMessageContaining(set.toString());
      assertThat(e.getMessage()).hasLineCount(1);
      return Optional.empty();
    }
  }

  /// @return whether the process ended before its commit was done
  private static boolean halts(Writer writer, Path set, int moment)
      throws IOException, InterruptedException {
    Process process =
        ChildJvm.command(List.of("-Xmx128m"), Halting.class, writer.name(), set, moment)
            .redirectErrorStream(true)
            .redirectOutput(Redirect.INHERIT)
            .start();
    try {
      assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
      assertThat(process.exitValue()).isIn(0, HALTED);
      return process.exitValue() == HALTED;
    } finally {
      process.destroyForcibly();
    }
  }

  /// The program that halts. Its arguments are the writer, the folder, and the number of the
  /// change of the folder before which it ends.
  static final class Halting {
    private Halting() {}

    public static void main(String[] arguments) {
      Path set = Path.of(arguments[1]);
      FileCalls calls = new EndsAtAChange(set, Integer.parseInt(arguments[2]));
      try (GantrySession session = Sessions.over(calls)) {
        Writer.valueOf(arguments[0]).write(session, set, NEW);
      }
    }
  }

  private static final class EndsAtAChange extends ForwardingFileCalls {
    private final Path set;
    private int left;

    EndsAtAChange(Path set, int left) {
      super(Libc.INSTANCE);
      this.set = set;
      this.left = left;
    }

    @Override
    public int rename(Path from, Path to) {
      change(to);
      return super.rename(from, to);
    }

    @Override
    public int unlink(Path file) {
      change(file);
      return super.unlink(file);
    }

    private void change(Path file) {
      if (set.equals(file.getParent()) && --left == 0) {
        Runtime.getRuntime().halt(HALTED);
      }
    }
  }
}
