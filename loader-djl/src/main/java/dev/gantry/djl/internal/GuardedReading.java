package dev.gantry.djl.internal;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.nio.ByteBuffer;

/// Values and text of arrays, also of those whose dtype DJL cannot read.
abstract class GuardedReading extends GuardedShaping {
  private static final int LARGEST_BUFFER_BYTES = Integer.MAX_VALUE - 8;

  GuardedReading(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  /// The bytes in C order and the machine's byte order.
  ///
  /// @param tryDirect for memory of the CPU, no copy: valid as long as this array, if it is
  ///     contiguous
  /// @throws MisuseException if they are more than a buffer can hold (2 GiB)
  @Override
  public ByteBuffer toByteBuffer(boolean tryDirect) {
    // DJL's native code writes past its Java array on more.
    int elementBytes =
        PyTorch.library().dtype(getHandle()).map(DType::bits).orElse(128) / Byte.SIZE;
    if (size() > LARGEST_BUFFER_BYTES / elementBytes) {
      throw new MisuseException(
          "an array of " + getShape() + " " + getDataType() + " does not fit one buffer");
    }
    if (!getDevice().isGpu()) {
      return super.toByteBuffer(tryDirect);
    }
    try (PtNDArray host = toDevice(Device.cpu(), true)) {
      return host.toByteBuffer(false);
    }
  }

  /// For BF16, F16 and F32.
  @Override
  public float[] toFloatArray() {
    if (getDataType() != DataType.BFLOAT16) {
      return super.toFloatArray();
    }
    try (PtNDArray floats = toType(DataType.FLOAT32, true)) {
      return floats.toFloatArray();
    }
  }

  /// For I64, and for U64 as the same bits.
  @Override
  public long[] toLongArray() {
    if (getDataType() != DataType.UINT64) {
      return super.toLongArray();
    }
    ByteBuffer bytes = toByteBuffer(true);
    long[] values = new long[bytes.remaining() / Long.BYTES];
    bytes.asLongBuffer().get(values);
    return values;
  }

  @Override
  public Number[] toArray() {
    if (getDataType() != DataType.BFLOAT16) {
      return super.toArray();
    }
    try (PtNDArray floats = toType(DataType.FLOAT32, true)) {
      return floats.toArray();
    }
  }

  @Override
  public String toDebugString() {
    return printable() ? super.toDebugString() : describe(true);
  }

  @Override
  public String toDebugString(boolean withContent) {
    return printable() ? super.toDebugString(withContent) : describe(withContent);
  }

  @Override
  public String toDebugString(
      int maxSize, int maxDepth, int maxRows, int maxColumns, boolean withContent) {
    return printable()
        ? super.toDebugString(maxSize, maxDepth, maxRows, maxColumns, withContent)
        : describe(withContent);
  }

  private boolean printable() {
    return isReleased()
        || switch (getDataType()) {
          case FLOAT32, FLOAT64, FLOAT16, BFLOAT16 -> true;
          case UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, BOOLEAN, STRING -> true;
          case COMPLEX64, UNKNOWN -> false;
        };
  }

  /// DJL has no text for complex numbers: pairs of a real and an imaginary part stand for them.
  private String describe(boolean withContent) {
    String head = "ND: " + getShape() + ' ' + getDevice() + ' ' + getDataType();
    if (!withContent || getDataType() == DataType.UNKNOWN) {
      return head + '\n';
    }
    try (NDArray pairs = real()) {
      return head + " as pairs of\n" + pairs.toDebugString();
    }
  }
}
