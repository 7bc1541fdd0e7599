// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Locale;
import java.util.zip.CRC32;

/// Reads tensors, and what files say of their bytes, on the CPU.
public final class TensorReading {
  private static final int STEP_BYTES = 64 << 10;

  private TensorReading() {}

  /// Reads a tensor of any encoding: densely, in C order, little endian.
  ///
  /// @param target native memory of the tensor's size
  /// @throws MalformedFileException if the bytes break a rule of the format
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public static void read(GantrySession session, StoredTensor tensor, MemorySegment target) {
    try (FileBytes file = FileBytes.open(session, tensor.extent().file())) {
      switch (tensor.encoding()) {
        case Encoding.Plain _ -> read(file, tensor.extent().offset(), target);
        case Encoding.Strided strided -> {
          try (FileWindow window = new FileWindow(file, tensor.extent())) {
            StridedReader.read(tensor.dtype(), tensor.shape(), strided, window, target);
          }
        }
        case Encoding.Sliced(var rows) -> readSliced(file, tensor, rows, target);
        case Encoding.Decoded(_, var decoder) -> decoder.decode(file, tensor, target);
      }
    }
  }

  private static void read(FileBytes file, long offset, MemorySegment target) {
    for (long at = 0; at < target.byteSize(); at += Integer.MAX_VALUE) {
      long step = Math.min(Integer.MAX_VALUE, target.byteSize() - at);
      file.readFully(target.asSlice(at, step).asByteBuffer(), offset + at);
    }
  }

  private static void readSliced(
      FileBytes file, StoredTensor tensor, List<Copy2D> slices, MemorySegment target) {
    for (Copy2D rows : slices) {
      for (long row = 0; row < rows.rows(); row++) {
        read(
            file,
            tensor.extent().offset() + rows.source() + row * rows.sourcePitch(),
            target.asSlice(rows.target() + row * rows.targetPitch(), rows.width()));
      }
    }
  }

  /// Reads the bytes of which the files give checksums, and compares.
  ///
  /// @throws MalformedFileException of kind `checksum-mismatch`
  /// @throws dev.gantry.core.TransferException if a file cannot be read
  public static void verify(GantrySession session, WeightsCatalogue weights) {
    weights.checksums().forEach(expected -> verify(session, expected));
  }

  private static void verify(GantrySession session, WeightsCatalogue.Checksum expected) {
    CRC32 sum = new CRC32();
    ByteBuffer buffer = ByteBuffer.allocate(STEP_BYTES);
    try (FileBytes file = FileBytes.open(session, expected.extent().file())) {
      for (long at = expected.extent().offset(); at < expected.extent().end(); ) {
        buffer.clear().limit((int) Math.min(STEP_BYTES, expected.extent().end() - at));
        at += buffer.remaining();
        file.readFully(buffer, at - buffer.remaining());
        sum.update(buffer.flip());
      }
    }
    requireSame(expected, (int) sum.getValue());
  }

  /// @throws MalformedFileException of kind `checksum-mismatch`
  public static void requireSame(WeightsCatalogue.Checksum expected, int found) {
    if (found != expected.crc32()) {
      throw new MalformedFileException(
          expected.extent().file(),
          expected.extent().offset(),
          "checksum-mismatch",
          String.format(
              Locale.ROOT,
              "the bytes have CRC-32 %08x, and the file says %08x",
              found,
              expected.crc32()));
    }
  }
}
