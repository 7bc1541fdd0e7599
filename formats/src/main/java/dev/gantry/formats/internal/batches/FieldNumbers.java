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
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/// Reads the number that a small field has in each sample, such as its label.
public final class FieldNumbers {
  /// The most classes that are counted.
  private static final int MAX_CLASSES = 1 << 20;

  private static final Set<DType> INTEGERS =
      EnumSet.of(
          DType.BOOL, DType.U8, DType.I8, DType.U16, DType.I16, DType.U32, DType.I32, DType.I64);

  private static final Set<DType> FLOATS = EnumSet.of(DType.F16, DType.BF16, DType.F32, DType.F64);

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
    if (field.shape().elements().orElse(0) != 1
        || !(INTEGERS.contains(field.dtype()) || FLOATS.contains(field.dtype()))) {
      throw new MisuseException(
          "the field '%s' is %s %s; it must be one number, of the types %s or %s"
              .formatted(name, field.dtype(), field.shape(), INTEGERS, FLOATS));
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
      ByteBuffer bytes = memory.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
      batches.readAll(
          session,
          batch -> {
            FieldView view = batch.label().fields().getFirst();
            int size = view.dtype().alignmentBytes();
            int pitch = (int) (view.strides().getFirst() * size);
            int length = (batch.label().samples() - 1) * pitch + size;
            batch.region(view.offset(), length).copyTo(memory.asSlice(0, length));
            for (int i = 0; i < batch.label().samples(); i++) {
              sink.accept(sample[0]++, number(view.dtype(), bytes, i * pitch));
            }
          });
    }
  }

  private static Number number(DType dtype, ByteBuffer bytes, int at) {
    return switch (dtype) {
      case BOOL, U8 -> (long) Byte.toUnsignedInt(bytes.get(at));
      case I8 -> (long) bytes.get(at);
      case U16 -> (long) Short.toUnsignedInt(bytes.getShort(at));
      case I16 -> (long) bytes.getShort(at);
      case U32 -> Integer.toUnsignedLong(bytes.getInt(at));
      case I32 -> (long) bytes.getInt(at);
      case I64 -> bytes.getLong(at);
      case F16 -> (double) Float.float16ToFloat(bytes.getShort(at));
      case BF16 -> (double) Float.intBitsToFloat(bytes.getShort(at) << Short.SIZE);
      case F32 -> (double) bytes.getFloat(at);
      case F64 -> bytes.getDouble(at);
      default -> throw new IllegalStateException("no number of " + dtype);
    };
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
                "the field '" + name + "' is no integer, so it has no classes");
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
