// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.Field;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The rules for every [SampleCatalogue], over data files that a test writes.
public abstract class SampleCatalogueContract {
  /// Opens the same data files each time. At least one field must be in files.
  protected abstract SampleCatalogue open() throws IOException;

  /// Returns the bytes that the test has written for a sample, little endian.
  protected abstract byte[] value(String field, int dataFile, long sample);

  private record Piece(Path file, long offset, int samples) {}

  private static List<Piece> pieces(SampleCatalogue catalogue, int field, SampleRun run) {
    List<Piece> pieces = new ArrayList<>();
    catalogue.pieces(
        field,
        run,
        (file, offset, samples) ->
            pieces.add(new Piece(((Location.Local) file).path(), offset, samples)));
    return pieces;
  }

  /// Returns runs of all samples of each data file, of its first half, and of each single sample.
  private static List<SampleRun> runs(SampleCatalogue catalogue) {
    List<SampleRun> runs = new ArrayList<>();
    for (int file = 0; file < catalogue.fileSamples().size(); file++) {
      int samples = Math.toIntExact(catalogue.fileSamples().get(file));
      if (samples > 0) {
        runs.add(new SampleRun(file, 0, samples));
        runs.add(new SampleRun(file, 0, (samples + 1) / 2));
      }
      for (int sample = 0; sample < samples; sample++) {
        runs.add(new SampleRun(file, sample, 1));
      }
    }
    return runs;
  }

  private static byte[] read(SampleCatalogue catalogue, int field, SampleRun run)
      throws IOException {
    int bytes = Math.toIntExact(catalogue.fields().get(field).sampleBytes());
    byte[] all = new byte[run.count() * bytes];
    int done = 0;
    for (Piece piece : pieces(catalogue, field, run)) {
      byte[] file = Files.readAllBytes(piece.file());
      int length = piece.samples() * bytes;
      System.arraycopy(file, Math.toIntExact(piece.offset()), all, done, length);
      done += length;
    }
    assertThat(done).isEqualTo(all.length);
    return all;
  }

  private static byte[] written(SampleCatalogue catalogue, int field, SampleRun run) {
    int length = Math.toIntExact(run.count() * catalogue.fields().get(field).sampleBytes());
    byte[] target = new byte[length + 5];
    Arrays.fill(target, (byte) 0x5a);
    catalogue.write(field, run, MemorySegment.ofArray(target), 3);
    // The catalogue must not write outside the target.
    assertThat(target).startsWith(0x5a, 0x5a, 0x5a).endsWith(0x5a, 0x5a);
    return Arrays.copyOfRange(target, 3, 3 + length);
  }

  private byte[] expected(Field field, SampleRun run) {
    int bytes = Math.toIntExact(field.sampleBytes());
    byte[] all = new byte[run.count() * bytes];
    for (int i = 0; i < run.count(); i++) {
      System.arraycopy(value(field.name(), run.file(), run.first() + i), 0, all, i * bytes, bytes);
    }
    return all;
  }

  private void requireAllValues(SampleCatalogue catalogue) throws IOException {
    for (int field = 0; field < catalogue.fields().size(); field++) {
      Field each = catalogue.fields().get(field);
      for (SampleRun run : runs(catalogue)) {
        if (each.sampleBytes() > 0) {
          byte[] found =
              switch (catalogue.source(field)) {
                case FieldSource.InFiles _ -> read(catalogue, field, run);
                case FieldSource.HostWritten() -> written(catalogue, field, run);
              };
          assertThat(found).as("%s %s", each, run).isEqualTo(expected(each, run));
        }
      }
    }
  }

  @Test
  void everyValueIsWhereTheCatalogueSays() throws IOException {
    try (SampleCatalogue catalogue = open()) {
      requireAllValues(catalogue);
    }
  }

  @Test
  void severalThreadsMayAskAtOnce() throws IOException {
    try (SampleCatalogue catalogue = open()) {
      List<Integer> threads = IntStream.range(0, 4).boxed().toList();
      assertThatCode(() ->
              threads.parallelStream()
                  .forEach(_ -> {
                    try {
                      requireAllValues(catalogue);
                    } catch (IOException e) {
                      throw new IllegalStateException(e);
                    }
                  }))
          .doesNotThrowAnyException();
    }
  }

  @Test
  void anotherOpeningTellsTheSame() throws IOException {
    try (SampleCatalogue first = open();
        SampleCatalogue second = open()) {
      assertThat(second.fields()).isEqualTo(first.fields());
      assertThat(second.fileSamples()).isEqualTo(first.fileSamples());
      assertThat(second.identity()).isEqualTo(first.identity()).isNotEmpty();
      assertThat(second.sampleSpan()).isEqualTo(first.sampleSpan());
      for (int field = 0; field < first.fields().size(); field++) {
        assertThat(second.source(field)).isEqualTo(first.source(field));
      }
    }
  }

  @Test
  void placesAscendAndKeepTheirBounds() throws IOException {
    try (SampleCatalogue catalogue = open()) {
      for (SampleRun run : runs(catalogue)) {
        long first = Long.MAX_VALUE;
        long end = 0;
        for (int field = 0; field < catalogue.fields().size(); field++) {
          long bytes = catalogue.fields().get(field).sampleBytes();
          if (bytes > 0
              && catalogue.source(field)
                  instanceof FieldSource.InFiles(long spacing, var aligned)) {
            long before = -1;
            Set<Path> files = new HashSet<>();
            for (Piece piece : pieces(catalogue, field, run)) {
              files.add(piece.file());
              assertThat(before < 0 || piece.offset() - before <= spacing).isTrue();
              assertThat(piece.offset()).isGreaterThan(before);
              int alignment = catalogue.fields().get(field).dtype().alignmentBytes();
              assertThat(!aligned || piece.offset() % alignment == 0).isTrue();
              before = piece.offset() + (piece.samples() - 1) * bytes;
              first = Math.min(first, piece.offset());
              end = Math.max(end, piece.offset() + piece.samples() * bytes);
            }
            assertThat(files).hasSize(1);
          }
        }
        if (run.count() == 1) {
          assertThat(end - first).isLessThanOrEqualTo(catalogue.sampleSpan());
        }
      }
    }
  }

  @Test
  void aFileThatChangedIsRefusedWhenItIsOpenedAgain() throws IOException {
    try (SampleCatalogue catalogue = open()) {
      int inFiles = 0;
      while (!(catalogue.source(inFiles) instanceof FieldSource.InFiles)) {
        inFiles++;
      }
      Path file = pieces(catalogue, inFiles, runs(catalogue).getFirst()).getFirst().file();
      Location location = Location.of(file);
      catalogue.opened(location, SourceFile.Identity.look(file));
      Files.write(file, new byte[1], StandardOpenOption.APPEND);
      assertThatThrownBy(() -> catalogue.opened(location, SourceFile.Identity.look(file)))
          .isInstanceOfSatisfying(
              MalformedFileException.class,
              fault -> assertThat(fault.kind()).isEqualTo("changed-meanwhile"));
    }
  }
}
