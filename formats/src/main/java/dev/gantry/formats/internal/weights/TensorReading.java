// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.convert.Dequantisation;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Reads tensors on the CPU.
public final class TensorReading {
  private TensorReading() {}

  /// Reads a tensor of any encoding: densely, in C order, little endian.
  ///
  /// @param target native memory of the tensor's size
  /// @throws MalformedFileException if the bytes break a rule of the format
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public static void read(GantrySession session, StoredTensor tensor, MemorySegment target) {
    if (tensor.encoding() instanceof Encoding.Joined(var parts)) {
      for (Encoding.Joined.Part part : parts) {
        try (FileBytes file = FileBytes.open(session, part.file())) {
          readRows(file, 0, part.rows(), target);
        }
      }
      return;
    }
    try (FileBytes file = FileBytes.open(session, tensor.extent().file())) {
      switch (tensor.encoding()) {
        case Encoding.Plain _ -> read(file, tensor.extent().offset(), target);
        case Encoding.Strided strided -> {
          try (FileWindow window = new FileWindow(file, tensor.extent())) {
            StridedReader.read(tensor.dtype(), tensor.shape(), strided, window, target);
          }
        }
        case Encoding.Sliced(var slices) ->
            slices.forEach(rows -> readRows(file, tensor.extent().offset(), rows, target));
        case Encoding.Joined _ -> throw new IllegalStateException("read above, from its files");
        case Encoding.Decoded(_, var decoder) -> decoder.decode(file, tensor, target);
        case Encoding.Quantised layout -> readQuantised(session, tensor, layout, target);
      }
    }
  }

  private static void readQuantised(
      GantrySession session, StoredTensor tensor, Encoding.Quantised layout, MemorySegment target) {
    try (Arena arena = Arena.ofShared()) {
      List<Long> sources = new ArrayList<>();
      for (QuantisedInput input : layout.inputs()) {
        MemorySegment memory = arena.allocate(Math.max(1, input.tensor().bytes()), Long.BYTES);
        read(session, input.tensor(), memory.asSlice(0, input.tensor().bytes()));
        sources.add(memory.address());
      }
      Dequantisation what = Dequantised.of(tensor.shape(), layout, tensor.dtype());
      session.convert(
          List.of(new Dequantisation.Task(what, sources, target.address())),
          Device.HOST,
          new Cancellation());
    }
  }

  private static void read(FileBytes file, long offset, MemorySegment target) {
    for (long at = 0; at < target.byteSize(); at += Integer.MAX_VALUE) {
      long step = Math.min(Integer.MAX_VALUE, target.byteSize() - at);
      file.readFully(target.asSlice(at, step).asByteBuffer(), offset + at);
    }
  }

  /// @param offset the file offset to which the rows' source offsets are relative
  private static void readRows(FileBytes file, long offset, Copy2D rows, MemorySegment target) {
    for (long row = 0; row < rows.rows(); row++) {
      read(
          file,
          offset + rows.source() + row * rows.sourcePitch(),
          target.asSlice(rows.target() + row * rows.targetPitch(), rows.width()));
    }
  }
}
