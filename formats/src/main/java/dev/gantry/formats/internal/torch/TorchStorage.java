// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.archive.ZipMember;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.ByteOrder;
import java.util.Optional;

/// Bytes of which several tensors may be views.
///
/// @param extent the extent of the stored bytes in the file, which may be compressed
/// @param bytes the decompressed size in bytes
/// @param deflated the member to decompress; empty if the bytes are stored
record TorchStorage(Extent extent, long bytes, ByteOrder order, Optional<ZipMember> deflated) {
  static TorchStorage of(ZipMember member, ByteOrder order) {
    return new TorchStorage(
        member.extent(),
        member.size(),
        order,
        member.isDeflated() ? Optional.of(member) : Optional.empty());
  }

  static TorchStorage of(Extent extent) {
    return new TorchStorage(extent, extent.length(), ByteOrder.LITTLE_ENDIAN, Optional.empty());
  }

  /// Makes a tensor of some elements of the storage. The caller has checked that they lie within
  /// the storage.
  ///
  /// @param from the offset of the first element in the storage, in bytes
  /// @param strided the strides, and the storage's byte order
  StoredTensor tensor(
      String name, DType dtype, TensorShape shape, long from, Encoding.Strided strided) {
    Encoding encoding = isPlain(dtype, shape, strided) ? Encoding.PLAIN : strided;
    if (deflated.isPresent()) {
      return deflated.get().tensor(name, dtype, shape, encoding, from);
    }
    long length = strided.span(shape) * (dtype.bits() / Byte.SIZE);
    return new StoredTensor(
        name, dtype, shape, new Extent(extent.file(), extent.offset() + from, length), encoding);
  }

  /// Whether the elements lie as memory holds them.
  private static boolean isPlain(DType dtype, TensorShape shape, Encoding.Strided strided) {
    if (shape.elements().orElseThrow() == 0) {
      return true;
    }
    if (strided.order() == ByteOrder.BIG_ENDIAN && dtype.bits() > Byte.SIZE) {
      return false;
    }
    long dense = 1;
    for (int axis = shape.rank() - 1; axis >= 0; axis--) {
      if (shape.dimension(axis) > 1 && strided.strides().get(axis) != dense) {
        return false;
      }
      dense *= shape.dimension(axis);
    }
    return true;
  }
}
