// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Formula;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.internal.weights.Dequantised;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/// Builds the layout of one quantised tensor: it finds the stored tensors by their names, and
/// collects the formula's inputs and parameters. Not thread-safe.
final class Layout {
  /// The dtypes that scales may have.
  static final Set<DType> SCALES = Set.of(DType.F32, DType.BF16, DType.F16);

  /// The largest tensor of indexes or notes that is read while a layout is built, in bytes.
  private static final long MAX_READ_BYTES = 64 << 20;

  private final Session session;
  private final Map<String, StoredTensor> tensors;
  private final StoredTensor codes;
  private final String name;
  private final Set<String> used;
  private final List<QuantisedInput> inputs = new ArrayList<>();
  private final List<Integer> parameters = new ArrayList<>();

  /// @param codes the tensor by which the quantised tensor was found
  /// @param name the quantised tensor's name
  /// @param used receives the names of the stored tensors that the layout uses
  Layout(
      Session session,
      Map<String, StoredTensor> tensors,
      StoredTensor codes,
      String name,
      Set<String> used) {
    this.session = session;
    this.tensors = tensors;
    this.codes = codes;
    this.name = name;
    this.used = used;
  }

  StoredTensor codes() {
    return codes;
  }

  /// Finds a stored tensor that the layout may have.
  Optional<StoredTensor> find(String other) {
    Optional<StoredTensor> found = Optional.ofNullable(tensors.get(other));
    found.ifPresent(tensor -> used.add(tensor.name()));
    return found;
  }

  /// Finds a stored tensor that the layout must have.
  StoredTensor get(String other) {
    return find(other)
        .orElseThrow(() ->
            malformed(
                codes,
                "missing-tensor",
                "'" + other + "' is missing, which '" + codes.name() + "' needs"));
  }

  /// Finds a stored tensor of scales.
  StoredTensor scales(String other) {
    StoredTensor scales = get(other);
    requireDtype(scales, SCALES);
    return scales;
  }

  /// Requires a tensor's dtype to be among the given ones.
  void requireDtype(StoredTensor tensor, Set<DType> some) {
    if (!some.contains(tensor.dtype())) {
      throw malformed(
          tensor,
          "wrong-dtype",
          "'%s' must be one of %s (was %s)"
              .formatted(tensor.name(), some.stream().sorted().toList(), tensor.dtype()));
    }
  }

  /// Requires a tensor to have the shape that other tensors imply.
  ///
  /// @param why says in the error what implies the shape
  void requireShape(StoredTensor tensor, String why, long... dimensions) {
    TensorShape wanted = TensorShape.of(dimensions);
    if (!tensor.shape().equals(wanted)) {
      throw malformed(
          tensor,
          "wrong-shape",
          "'%s' must have shape %s (was %s): %s"
              .formatted(tensor.name(), wanted, tensor.shape(), why));
    }
  }

  void require(boolean fulfilled, String kind, String detail) {
    if (!fulfilled) {
      throw malformed(codes, kind, detail);
    }
  }

  MalformedFileException malformed(StoredTensor tensor, String kind, String detail) {
    return new MalformedFileException(
        tensor.extent().file(), tensor.extent().offset(), kind, detail);
  }

  /// Adds an input, and returns its number.
  int add(StoredTensor tensor, QuantisedInput.Axis... axes) {
    if (!tensor.isPlain()) {
      throw malformed(
          tensor,
          "not-plain",
          "'" + tensor.name() + "' does not lie in its file as memory holds it");
    }
    inputs.add(QuantisedInput.of(tensor, axes));
    return inputs.size() - 1;
  }

  /// Adds an input whose bytes are interpreted with another dtype and shape.
  int add(StoredTensor tensor, DType dtype, TensorShape shape, QuantisedInput.Axis... axes) {
    return add(new StoredTensor(tensor.name(), dtype, shape, tensor.extent()), axes);
  }

  /// Adds a parameter.
  Formula parameter(long value) {
    parameters.add(Math.toIntExact(value));
    return new Formula.Parameter(parameters.size() - 1);
  }

  /// Returns a number of a few bits from a stream of bytes, in which numbers are packed from each
  /// byte's lowest bit on.
  ///
  /// @param bits 1 to 8
  /// @param byteAt loads a byte by its index in the stream
  static Formula packed(int bits, Formula index, Function<Formula, Formula> byteAt) {
    int mask = (1 << bits) - 1;
    if (Byte.SIZE % bits == 0) {
      int inByte = Byte.SIZE / bits;
      Formula code = byteAt.apply(index.dividedBy(inByte));
      return bits == Byte.SIZE
          ? code
          : code.shiftedRight(index.modulo(inByte).times(bits)).and(mask);
    }
    Formula bit = index.times(bits);
    Formula low = byteAt.apply(bit.dividedBy(Byte.SIZE));
    Formula high = byteAt.apply(bit.plus(bits - 1).dividedBy(Byte.SIZE)).shiftedLeft(Byte.SIZE);
    return low.or(high).shiftedRight(bit.modulo(Byte.SIZE)).and(mask);
  }

  /// Reads a small tensor whole.
  ByteBuffer read(StoredTensor tensor) {
    Extent extent = tensor.extent();
    if (extent.length() > MAX_READ_BYTES || !tensor.isPlain()) {
      throw malformed(
          tensor, "too-large", "'" + tensor.name() + "' has " + extent.length() + " bytes");
    }
    ByteBuffer bytes = ByteBuffer.allocate((int) extent.length()).order(ByteOrder.LITTLE_ENDIAN);
    try (FileBytes file = FileBytes.open(session, extent.file())) {
      file.readFully(bytes, extent.offset());
    }
    return bytes.flip();
  }

  /// Reads a small tensor that holds JSON.
  JsonTree json(StoredTensor tensor) {
    try (FileBytes file = FileBytes.open(session, tensor.extent().file())) {
      return JsonTree.read(file, tensor.extent().offset(), tensor.extent().end());
    }
  }

  StoredTensor tensor(String layout, Formula value, long... dimensions) {
    return tensor(layout, value, Math.max(-1, dimensions.length - 2), TensorShape.of(dimensions));
  }

  StoredTensor tensor(String layout, Formula value, int rowAxis, TensorShape shape) {
    Encoding.Quantised encoding =
        new Encoding.Quantised(layout, value, inputs, parameters, rowAxis);
    StoredTensor tensor = new StoredTensor(name, DType.F32, shape, codes.extent(), encoding);
    var _ = Dequantised.of(shape, encoding, DType.F32);
    used.add(codes.name());
    return tensor;
  }
}
