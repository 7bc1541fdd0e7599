// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.spi.Encoding;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Copies strided or big-endian elements into C order, little endian. Not thread-safe.
public final class StridedReader {
  /// A source of bytes that shows one window at a time.
  public interface Window {
    /// Returns native or heap memory with at least `least` bytes from `offset` on.
    ///
    /// @param offset the offset in bytes from the first element
    MemorySegment at(long offset, long least);
  }

  /// An axis of the copy, with its strides in the source (`from`) and the target (`to`), in units
  /// of the copied width.
  private record Axis(long length, long from, long to) {}

  private final int width;
  private final boolean swapped;
  private final List<Axis> axes;

  private StridedReader(int width, boolean swapped, List<Axis> axes) {
    this.width = width;
    this.swapped = swapped;
    this.axes = axes;
  }

  /// Reads all elements of a tensor.
  ///
  /// @param target memory of the tensor's size
  public static void read(
      DType dtype,
      TensorShape shape,
      Encoding.Strided strided,
      Window source,
      MemorySegment target) {
    if (target.byteSize() > 0) {
      of(dtype, shape, strided).copy(source, target);
    }
  }

  /// Reads all elements of a tensor whose bytes are all in memory.
  public static void read(
      DType dtype,
      TensorShape shape,
      Encoding.Strided strided,
      MemorySegment source,
      MemorySegment target) {
    read(dtype, shape, strided, (offset, _) -> source.asSlice(offset), target);
  }

  private static StridedReader of(DType dtype, TensorShape shape, Encoding.Strided strided) {
    // Byte order applies to each half of a complex number by itself.
    int parts = dtype == DType.C64 ? 2 : 1;
    int width = dtype.bits() / Byte.SIZE / parts;
    List<Axis> axes = new ArrayList<>();
    long to = 1;
    if (parts > 1) {
      axes.add(new Axis(parts, 1, 1));
      to = parts;
    }
    for (int axis = shape.rank() - 1; axis >= 0; axis--) {
      long length = shape.dimension(axis);
      if (length > 1) {
        axes.add(new Axis(length, strided.strides().get(axis) * parts, to));
      }
      to *= length;
    }
    // Axes are ordered by their strides, so that the file is read from its start to its end if
    // the strides allow it.
    axes.sort(Comparator.comparingLong(Axis::from).reversed());
    return new StridedReader(width, strided.order() == ByteOrder.BIG_ENDIAN, merged(axes));
  }

  /// Merges axes whose elements lie end to end in both the source and the target.
  private static List<Axis> merged(List<Axis> axes) {
    List<Axis> merged = new ArrayList<>();
    for (Axis axis : axes) {
      Axis outer = merged.isEmpty() ? null : merged.getLast();
      if (outer != null
          && outer.from() == axis.length() * axis.from()
          && outer.to() == axis.length() * axis.to()) {
        merged.set(
            merged.size() - 1, new Axis(outer.length() * axis.length(), axis.from(), axis.to()));
      } else {
        merged.add(axis);
      }
    }
    if (merged.isEmpty()) {
      merged.add(new Axis(1, 1, 1));
    }
    return merged;
  }

  private void copy(Window source, MemorySegment target) {
    Axis inner = axes.getLast();
    long[] index = new long[axes.size() - 1];
    long from = 0;
    long to = 0;
    while (true) {
      run(source, from, target, to, inner);
      int axis = index.length - 1;
      while (axis >= 0 && ++index[axis] == axes.get(axis).length()) {
        index[axis] = 0;
        from -= (axes.get(axis).length() - 1) * axes.get(axis).from();
        to -= (axes.get(axis).length() - 1) * axes.get(axis).to();
        axis--;
      }
      if (axis < 0) {
        return;
      }
      from += axes.get(axis).from();
      to += axes.get(axis).to();
    }
  }

  /// Copies the elements of the innermost axis; each step copies as many elements as the window
  /// has.
  private void run(Window source, long from, MemorySegment target, long to, Axis inner) {
    long step = inner.from() * width;
    for (long done = 0; done < inner.length(); ) {
      MemorySegment window = source.at(from * width + done * step, width);
      long left = inner.length() - done;
      long count = step == 0 ? left : Math.min(left, (window.byteSize() - width) / step + 1);
      elements(window, step, target, (to + done * inner.to()) * width, inner.to() * width, count);
      done += count;
    }
  }

  private void elements(
      MemorySegment source, long fromStep, MemorySegment target, long to, long toStep, long count) {
    if (fromStep == width && toStep == width && (!swapped || width == 1)) {
      MemorySegment.copy(source, 0, target, to, count * width);
      return;
    }
    switch (width) {
      case Byte.BYTES -> {
        for (long i = 0; i < count; i++) {
          target.set(
              ValueLayout.JAVA_BYTE,
              to + i * toStep,
              source.get(ValueLayout.JAVA_BYTE, i * fromStep));
        }
      }
      case Short.BYTES -> {
        for (long i = 0; i < count; i++) {
          short element = source.get(ValueLayout.JAVA_SHORT_UNALIGNED, i * fromStep);
          target.set(
              ValueLayout.JAVA_SHORT_UNALIGNED,
              to + i * toStep,
              swapped ? Short.reverseBytes(element) : element);
        }
      }
      case Integer.BYTES -> {
        for (long i = 0; i < count; i++) {
          int element = source.get(ValueLayout.JAVA_INT_UNALIGNED, i * fromStep);
          target.set(
              ValueLayout.JAVA_INT_UNALIGNED,
              to + i * toStep,
              swapped ? Integer.reverseBytes(element) : element);
        }
      }
      case Long.BYTES -> {
        for (long i = 0; i < count; i++) {
          long element = source.get(ValueLayout.JAVA_LONG_UNALIGNED, i * fromStep);
          target.set(
              ValueLayout.JAVA_LONG_UNALIGNED,
              to + i * toStep,
              swapped ? Long.reverseBytes(element) : element);
        }
      }
      default -> throw new IllegalStateException("elements of " + width + " bytes");
    }
  }
}
