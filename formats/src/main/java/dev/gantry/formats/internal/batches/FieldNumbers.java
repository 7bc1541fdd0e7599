// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/// Reads the number that a small field has in each sample, such as its label.
public final class FieldNumbers {
  /// The most classes that are counted.
  private static final int MAX_CLASSES = 1 << 20;

  /// Reads a field's number from memory.
  @FunctionalInterface
  private interface Element {
    Number at(MemorySegment bytes, long offset);
  }

  /// How many samples are read at a time where their values lie end to end.
  private static final int DENSE_SAMPLES = 1 << 16;

  /// How many samples are read at a time where each value may take a block of its own.
  private static final int SPREAD_SAMPLES = 1 << 10;

  private FieldNumbers() {}

  /// Takes the samples' numbers in their order.
  @FunctionalInterface
  public interface Sink {
    /// @param sample the sample's number among those of all data files, which come one after the other
    /// @param value a [Long] for integers and booleans, else a [Double]
    void accept(long sample, Number value);
  }

  /// Reads one field of all samples, and no other.
  ///
  /// @throws MisuseException if there is no such field, or its value is not one number
  public static void read(GantrySession session, SampleCatalogue store, String name, Sink sink) {
    int index = store.fields().stream().map(Field::name).toList().indexOf(name);
    if (index < 0) {
      throw new MisuseException("no field '" + name + "' among " + store.fields());
    }
    Field field = store.fields().get(index);
    Optional<Element> element = element(field.dtype());
    if (field.shape().elements().orElse(0) != 1 || element.isEmpty()) {
      throw new MisuseException(
          "the field '%s' is %s %s; it must be one number, of the types %s"
              .formatted(
                  name,
                  field.dtype(),
                  field.shape(),
                  Stream.of(DType.values()).filter(each -> element(each).isPresent()).toList()));
    }
    boolean dense =
        switch (store.source(index)) {
          case FieldSource.HostWritten() -> true;
          case FieldSource.InFiles(long spacing, _) -> spacing == field.sampleBytes();
        };
    OrderOptions order = OrderOptions.of(dense ? DENSE_SAMPLES : SPREAD_SAMPLES);
    EpochBatches batches =
        EpochBatches.of(SelectedSamples.withFields(store, List.of(index)), order);
    long[] sample = {0};
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(batches.slotBytes(), Long.BYTES);
      batches.readAll(
          session,
          batch -> {
            FieldView view = batch.label().fields().getFirst();
            int size = view.dtype().alignmentBytes();
            int pitch = (int) (view.strides().getFirst() * size);
            int length = (batch.label().samples() - 1) * pitch + size;
            batch.region(view.offset(), length).copyTo(memory.asSlice(0, length));
            for (int i = 0; i < batch.label().samples(); i++) {
              sink.accept(sample[0]++, element.get().at(memory, (long) i * pitch));
            }
          });
    }
  }

  /// Reads integers and truth values as [Long], floating-point numbers as [Double]. 64 bits without a sign fit neither.
  private static Optional<Element> element(DType dtype) {
    if (dtype == DType.U64) {
      return Optional.empty();
    }
    return ElementNumbers.integers(dtype)
        .<Element>map(integers -> integers::at)
        .or(() -> ElementNumbers.numbers(dtype).map(floats -> floats::at));
  }

  /// Counts the samples of each class.
  ///
  /// @param name a field of one integer
  /// @throws MisuseException also if the field is no integer, or there are too many classes
  public static SortedMap<Long, Long> counts(
      GantrySession session, SampleCatalogue store, String name) {
    SortedMap<Long, Long> counts = new TreeMap<>();
    read(
        session,
        store,
        name,
        (_, value) -> {
          if (!(value instanceof Long number)) {
            throw new MisuseException(
                "the field '" + name + "' is not an integer, so it has no classes");
          }
          long _ = counts.merge(number, 1L, Long::sum);
          requireClasses(name, counts.size());
        });
    return counts;
  }

  /// @throws MisuseException if a field has more different values than classes are counted
  static void requireClasses(String name, int classes) {
    if (classes > MAX_CLASSES) {
      throw new MisuseException(
          "the field '" + name + "' has more than " + MAX_CLASSES + " different values");
    }
  }
}
