// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.Location;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.SampleBits;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/// Serves some samples of another catalogue, with some of their fields. Orders, ranks and states
/// refer only to these samples. It owns the other catalogue.
public final class SelectedSamples implements SampleCatalogue {
  private final SampleCatalogue store;

  /// The numbers within the other catalogue of the fields.
  private final List<Integer> fields;

  private final SampleBits chosen;

  /// The number of each data file's first sample among all samples, and among the chosen ones.
  private final long[] starts;

  private final long[] chosenStarts;
  private final long mostSteps;
  private final String identity;

  private SelectedSamples(SampleCatalogue store, List<Integer> fields, SampleBits chosen) {
    this.store = store;
    this.fields = List.copyOf(fields);
    this.chosen = chosen;
    List<Long> samples = store.fileSamples();
    starts = new long[samples.size() + 1];
    chosenStarts = new long[starts.length];
    for (int file = 0; file < samples.size(); file++) {
      starts[file + 1] = starts[file] + samples.get(file);
      chosenStarts[file + 1] = chosen.countBelow(starts[file + 1]);
    }
    boolean all = chosen.count() == starts[samples.size()];
    mostSteps = all ? 1 : mostSteps();
    identity = store.identity() + (all ? "" : "/of/" + chosen.identity());
  }

  /// Makes a catalogue of the same samples.
  ///
  /// @param fields the numbers within `other` of some of its fields
  private SelectedSamples(SelectedSamples other, List<Integer> fields) {
    store = other.store;
    this.fields = fields.stream().map(other.fields::get).toList();
    chosen = other.chosen;
    starts = other.starts;
    chosenStarts = other.chosenStarts;
    mostSteps = other.mostSteps;
    identity = other.identity;
  }

  /// @param chosen some of the samples of all data files, which are numbered one file after the other
  public static SelectedSamples of(SampleCatalogue store, SampleBits chosen) {
    return new SelectedSamples(store, allFields(store), chosen);
  }

  /// Returns all samples with some of their fields.
  ///
  /// @param fields the fields' numbers
  static SampleCatalogue withFields(SampleCatalogue store, List<Integer> fields) {
    if (fields.equals(allFields(store))) {
      return store;
    }
    return store instanceof SelectedSamples some
        ? new SelectedSamples(some, fields)
        : new SelectedSamples(store, fields, SampleBits.all(count(store)));
  }

  /// Returns all samples with their first fields only.
  public static SampleCatalogue withFirstFields(SampleCatalogue store, int count) {
    return withFields(store, IntStream.range(0, count).boxed().toList());
  }

  private static List<Integer> allFields(SampleCatalogue store) {
    return IntStream.range(0, store.fields().size()).boxed().toList();
  }

  /// How many samples a catalogue has.
  public static long count(SampleCatalogue store) {
    return store.fileSamples().stream().mapToLong(Long::longValue).sum();
  }

  /// The most samples from one chosen sample of a data file to the next one.
  private long mostSteps() {
    long most = 1;
    for (int file = 0; file < starts.length - 1; file++) {
      long before = -1;
      for (long i = chosenStarts[file]; i < chosenStarts[file + 1]; i++) {
        long number = chosen.next(before < 0 ? starts[file] : before + 1);
        most = before < 0 ? most : Math.max(most, number - before);
        before = number;
      }
    }
    return most;
  }

  @Override
  public List<Field> fields() {
    return fields.stream().map(store.fields()::get).toList();
  }

  @Override
  public List<Long> fileSamples() {
    List<Long> samples = new ArrayList<>();
    for (int file = 0; file < starts.length - 1; file++) {
      samples.add(chosenStarts[file + 1] - chosenStarts[file]);
    }
    return samples;
  }

  @Override
  public String identity() {
    return identity;
  }

  @Override
  public FieldSource source(int field) {
    return switch (store.source(fields.get(field))) {
      case FieldSource.HostWritten made -> made;
      case FieldSource.InFiles(long spacing, boolean aligned) -> {
        boolean fits = spacing <= Long.MAX_VALUE / mostSteps;
        yield new FieldSource.InFiles(fits ? spacing * mostSteps : Long.MAX_VALUE, aligned);
      }
    };
  }

  @Override
  public long sampleSpan() {
    return store.sampleSpan();
  }

  /// Gives the runs of the other catalogue that the samples are.
  private void runs(SampleRun run, Consumer<SampleRun> sink) {
    long start = starts[run.file()];
    long next = chosen.number(chosenStarts[run.file()] + run.first());
    int left = run.count();
    while (left > 0) {
      long first = next;
      int count = 0;
      do {
        count++;
        left--;
        next = left == 0 ? next : chosen.next(next + 1);
      } while (left > 0 && next == first + count);
      sink.accept(new SampleRun(run.file(), first - start, count));
    }
  }

  @Override
  public void pieces(int field, SampleRun run, PieceSink sink) {
    runs(run, each -> store.pieces(fields.get(field), each, sink));
  }

  @Override
  public void write(int field, SampleRun run, MemorySegment target, long offset) {
    write(field, run, 0, target, offset);
  }

  @Override
  public void write(int field, SampleRun run, long epoch, MemorySegment target, long offset) {
    long bytes = store.fields().get(fields.get(field)).sampleBytes();
    long[] done = {0};
    runs(
        run,
        each -> {
          store.write(fields.get(field), each, epoch, target, offset + done[0] * bytes);
          done[0] += each.count();
        });
  }

  @Override
  public void opened(Location file, Object identity) {
    store.opened(file, identity);
  }

  @Override
  public void close() {
    store.close();
  }
}
