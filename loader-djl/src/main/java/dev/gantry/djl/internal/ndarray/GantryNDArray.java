// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.index.dim.NDIndexElement;
import ai.djl.ndarray.index.dim.NDIndexFixed;
import ai.djl.ndarray.internal.NDArrayEx;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// An array of DJL's PyTorch engine that may have any dtype of libtorch and may lie in memory that
/// Gantry owns.
///
/// DJL 0.35's native code knows eight dtypes ([PyTorch#isSafe]) and ends the JVM on the others.
/// The methods here that would reach this native code with another dtype call libtorch's C
/// functions instead, or throw a [MisuseException].
///
/// Arrays of the eight dtypes are as fast as DJL's own: their operations are DJL's, and return
/// DJL's arrays. Only copies, casts and results of another dtype are instances of this class. All
/// results of an array of another dtype are instances of this class, and so are results with more
/// than 2³¹-1 elements, because DJL reads a wrong element for a larger index. [GuardedClasses]
/// makes the two subclasses that do this.
///
/// Three cases are not guarded, because they are calls of DJL's own arrays and managers: `create`,
/// `zeros`, `ones` and `full` of `NDManager` with another dtype; methods of DJL's own arrays that
/// name another dtype, or that have an operand of another dtype; and `backward` from a BF16 array.
/// [Guards#guard] takes over an array of DJL's own.
///
/// A call of `getNDArrayInternal` on the type `PtNDArray` returns DJL's operations. A call on the
/// interface `NDArray`, as DJL's blocks make it, returns guarded operations.
///
/// As thread-safe as DJL's own arrays.
public abstract class GantryNDArray extends PtNDArray {
  private static final int LARGEST_BUFFER_BYTES = Integer.MAX_VALUE - 8;
  private static final int COMPLEX128_BYTES = 16;

  /// The array that this array took over. It may hold the Java buffer that the native tensor
  /// points into, so this array keeps it reachable.
  private final AtomicReference<@Nullable PtNDArray> source;

  private DataType dataType;

  /// Whether other processes read the memory, so that this process must not write to it.
  private boolean readOnly;

  private volatile @Nullable Runnable beforeUse;

  private @Nullable NDArrayEx operations;

  /// @param dataType UNKNOWN for a dtype that DJL has no name for, such as complex128
  GantryNDArray(PtNDManager manager, long handle, DataType dataType) {
    // This field is set before the manager gets the array, since the manager may close the array
    // from then on.
    source = new AtomicReference<>();
    super(manager, handle);
    this.dataType = dataType;
  }

  /// Makes an array over a handle. The array owns the handle and belongs to `manager`. If this
  /// throws, the handle is deleted.
  ///
  /// @param dataType the dtype of the handle's tensor; UNKNOWN for a dtype that DJL has no name
  ///     for
  /// @param elements the number of elements of the handle's tensor
  /// @throws IllegalStateException if the manager is closed or capped
  static GantryNDArray over(PtNDManager manager, long handle, DataType dataType, long elements) {
    return over(manager, handle, dataType, elements, false);
  }

  /// @param readOnly whether operations that would change the array, or a view of it, are refused
  static GantryNDArray over(
      PtNDManager manager, long handle, DataType dataType, long elements, boolean readOnly) {
    // A read-only array counts as unsafe, so that all its results are checked, because views of it
    // must be read-only, too.
    boolean isSafe = PyTorch.isSafe(dataType) && elements <= Integer.MAX_VALUE && !readOnly;
    try {
      GantryNDArray array = GuardedClasses.array(manager, handle, dataType, isSafe);
      array.readOnly = readOnly;
      return array;
    } catch (RuntimeException | Error refused) {
      PyTorch.library().delete(handle);
      throw refused;
    }
  }

  /// Keeps `taken` until this array is closed.
  void hold(PtNDArray taken) {
    source.set(taken);
  }

  /// Sets an action that is run before each use of the array, and may throw to refuse the use.
  /// Null removes it.
  public void askBeforeUse(@Nullable Runnable question) {
    beforeUse = question;
  }

  @Override
  public Long getHandle() {
    Runnable question = beforeUse;
    if (question != null) {
      question.run();
    }
    return super.getHandle();
  }

  /// Turns the result of DJL's own method into the result of this array's method.
  final NDArray result(NDArray made) {
    if (readOnly && Guards.isView(this, made)) {
      return Guards.guard(made, true);
    }
    return isPlain(made) ? made : Guards.guard(made);
  }

  /// Does what [#result(NDArray)] does to each array of the list, in place.
  final NDList result(NDList made) {
    made.replaceAll(this::result);
    return made;
  }

  /// Whether other processes read the memory.
  final boolean isReadOnly() {
    return readOnly;
  }

  /// @throws MisuseException if other processes read the memory
  final void requireWritable() {
    if (readOnly) {
      String name = getName();
      throw new MisuseException(
          (name == null ? "this array" : "'" + name + "'")
              + " is read-only: it lies in memory that other processes read (resident weights);"
              + " change a copy (duplicate)");
    }
  }

  private boolean isPlain(NDArray made) {
    return made instanceof PtNDArray plain
        && PyTorch.isSafe(dataType)
        && plain.getHandle() != Guards.NO_TENSOR
        && PyTorch.isSafe(plain.getDataType())
        && (size() <= Integer.MAX_VALUE || plain.size() <= Integer.MAX_VALUE);
  }

  /// Returns the guarded operations, which a call of `getNDArrayInternal` on the interface
  /// `NDArray` returns.
  final NDArrayEx operations() {
    if (operations == null) {
      operations = GuardedClasses.operations(this, getNDArrayInternal());
    }
    return operations;
  }

  /// The array that holds the Java buffer, if this array's memory is in one.
  final PtNDArray bufferHolder() {
    PtNDArray taken = source.get();
    return taken == null ? this : taken;
  }

  /// The true type, also for BFLOAT16, INT16 and the unsigned types, for which DJL's own arrays
  /// return UNKNOWN.
  @Override
  public DataType getDataType() {
    return dataType;
  }

  /// @throws MisuseException if this array is of one of DJL's eight dtypes and `replaced` is not
  @Override
  public void intern(NDArray replaced) {
    if (PyTorch.isSafe(dataType) && !PyTorch.isSafe(replaced.getDataType())) {
      throw new MisuseException(
          "an array of " + dataType + " cannot become one of " + replaced.getDataType());
    }
    GantryNDArray incoming = (GantryNDArray) Guards.guard(replaced);
    PtNDArray kept = incoming.source.getAndSet(null);
    super.intern(incoming);
    dataType = incoming.dataType;
    PtNDArray old = source.getAndSet(kept);
    if (old != null) {
      old.close();
    }
  }

  /// Closing twice does nothing. The memory is released after its last view is closed, too.
  @Override
  public void close() {
    super.close();
    PtNDArray taken = source.getAndSet(null);
    if (taken != null) {
      taken.close();
    }
  }

  @Override
  public void copyTo(NDArray target) {
    if (target instanceof GantryNDArray guarded) {
      guarded.requireWritable();
    }
    super.copyTo(target);
  }

  /// @param copy whether to copy even if the array is on this device already
  @Override
  public PtNDArray toDevice(Device device, boolean copy) {
    if (device.equals(getDevice())) {
      return copy ? duplicate() : this;
    }
    dev.gantry.core.Device target = PyTorch.arraysDevice(device);
    if (PyTorch.isSafe(dataType)) {
      return Guards.guard(super.toDevice(device, true));
    }
    return made(PyTorch.library().move(getHandle(), target), dataType, device);
  }

  /// Gradients flow back through the cast, unlike through a cast by DJL's own array.
  ///
  /// @param copy whether to copy even if the array has this type already
  /// @throws MisuseException if no tensor can have this type
  @Override
  public PtNDArray toType(DataType type, boolean copy) {
    if (type == dataType) {
      return copy ? duplicate() : this;
    }
    if (isSparse() && PyTorch.isSafe(type)) {
      return Guards.guard(super.toType(type, true));
    }
    return made(
        PyTorch.library().convert(getHandle(), PyTorch.dtype(type), PyTorch.device(getDevice())),
        type,
        getDevice());
  }

  @Override
  public PtNDArray duplicate() {
    return Guards.guard(super.duplicate());
  }

  /// @throws MisuseException for integers and complex numbers of a type that DJL does not know
  @Override
  public PtNDArray softmax(int axis) {
    return PyTorch.isSafe(dataType)
        ? super.softmax(axis)
        : widened("softmax", floats -> floats.softmax(axis));
  }

  /// @throws MisuseException for integers and complex numbers of a type that DJL does not know
  @Override
  public PtNDArray logSoftmax(int axis) {
    return PyTorch.isSafe(dataType)
        ? super.logSoftmax(axis)
        : widened("logSoftmax", floats -> floats.logSoftmax(axis));
  }

  private PtNDArray widened(String operation, UnaryOperator<PtNDArray> function) {
    if (dataType != DataType.BFLOAT16) {
      throw new MisuseException(operation + " of " + dataType + " is not defined");
    }
    try (PtNDArray floats = toType(DataType.FLOAT32, true);
        PtNDArray result = Guards.guard(function.apply(floats))) {
      return result.toType(dataType, true);
    }
  }

  @Override
  public NDArray cumProd(int axis, @Nullable DataType type) {
    if (type == null || PyTorch.isSafe(type)) {
      return super.cumProd(axis, type);
    }
    try (PtNDArray converted = toType(type, true)) {
      return converted.cumProd(axis);
    }
  }

  @Override
  public NDArray oneHot(int depth, DataType type) {
    if (PyTorch.isSafe(type)) {
      return super.oneHot(depth, type);
    }
    try (NDArray whole = Guards.guard(super.oneHot(depth, DataType.INT64))) {
      return whole.toType(type, true);
    }
  }

  @Override
  public NDArray zerosLike() {
    return PyTorch.isSafe(dataType) ? super.zerosLike() : filled(0);
  }

  @Override
  public NDArray onesLike() {
    return PyTorch.isSafe(dataType) ? super.onesLike() : filled(1);
  }

  private PtNDArray filled(long value) {
    try (PtNDArray scalar = (PtNDArray) getManager().create(value)) {
      long handle =
          PyTorch.library()
              .filled(
                  PyTorch.shape(getShape()),
                  PyTorch.dtype(dataType),
                  PyTorch.device(getDevice()),
                  scalar.getHandle());
      return made(handle, dataType, getDevice());
    }
  }

  /// Makes an array over a new handle, with this array's name. Like DJL's results, it belongs to
  /// this array's manager, or to a new submanager if it is on another device.
  private PtNDArray made(long handle, DataType type, Device device) {
    PtNDManager manager = getManager();
    PtNDArray array =
        over(
            device.equals(manager.getDevice()) ? manager : manager.newSubManager(device),
            handle,
            type,
            size());
    array.setName(getName());
    return array;
  }

  /// @throws MisuseException for a single index greater than 2³¹-1 together with an index of
  ///     another kind, such as a slice; use a slice of one element instead
  @Override
  public NDArray get(NDManager manager, NDIndex index) {
    if (index.getRank() == 0 && isScalar()) {
      NDArray copy = duplicate();
      copy.attach(manager);
      return copy;
    }
    if (index.getIndices().stream().anyMatch(GantryNDArray::isFar)) {
      return get(manager, singles(index));
    }
    return super.get(manager, index);
  }

  /// Whether an index exceeds the range of int. DJL casts a single index to int, and would read
  /// another element (measured: 0.35.1).
  private static boolean isFar(NDIndexElement element) {
    return element instanceof NDIndexFixed single && single.getIndex() != (int) single.getIndex();
  }

  private static long[] singles(NDIndex index) {
    return index.getIndices().stream()
        .mapToLong(element -> {
          if (element instanceof NDIndexFixed single) {
            return single.getIndex();
          }
          throw new MisuseException(
              "a single index above 2147483647 cannot be combined with a slice; use i:i+1 instead");
        })
        .toArray();
  }

  /// The bytes of an element; those of the largest dtype if DJL has no name for this one.
  final int elementBytes() {
    return dataType == DataType.UNKNOWN
        ? COMPLEX128_BYTES
        : PyTorch.dtype(dataType).bits() / Byte.SIZE;
  }

  /// The bytes in C order and the machine's byte order.
  ///
  /// @param tryDirect whether to return the memory itself if the array is on the CPU and
  ///     contiguous; the buffer is then valid as long as the array
  /// @throws MisuseException if the bytes are more than a buffer can hold (2 GiB)
  @Override
  public ByteBuffer toByteBuffer(boolean tryDirect) {
    int elementBytes = elementBytes();
    // If an array had more bytes, DJL's native code would write past the end of its Java array.
    if (size() > LARGEST_BUFFER_BYTES / elementBytes) {
      throw new MisuseException(
          "an array of " + getShape() + " " + dataType + " does not fit one buffer of 2 GiB");
    }
    if (!getDevice().isGpu()) {
      ByteBuffer bytes = super.toByteBuffer(tryDirect);
      return readOnly ? bytes.asReadOnlyBuffer().order(bytes.order()) : bytes;
    }
    try (PtNDArray host = toDevice(Device.cpu(), true)) {
      return host.toByteBuffer(false);
    }
  }

  /// Supports arrays of BF16, F16 and F32.
  @Override
  public float[] toFloatArray() {
    if (dataType != DataType.BFLOAT16) {
      return super.toFloatArray();
    }
    try (PtNDArray floats = toType(DataType.FLOAT32, true)) {
      return floats.toFloatArray();
    }
  }

  /// Supports arrays of I64, and of U64, whose bits are kept.
  @Override
  public long[] toLongArray() {
    if (dataType != DataType.UINT64) {
      return super.toLongArray();
    }
    ByteBuffer bytes = toByteBuffer(true);
    long[] values = new long[bytes.remaining() / Long.BYTES];
    bytes.asLongBuffer().get(values);
    return values;
  }

  @Override
  public Number[] toArray() {
    if (dataType != DataType.BFLOAT16) {
      return super.toArray();
    }
    try (PtNDArray floats = toType(DataType.FLOAT32, true)) {
      return floats.toArray();
    }
  }

  @Override
  public String toDebugString() {
    return isPrintable() ? super.toDebugString() : describe(true);
  }

  @Override
  public String toDebugString(
      int maxSize, int maxDepth, int maxRows, int maxColumns, boolean withContent) {
    return isPrintable()
        ? super.toDebugString(maxSize, maxDepth, maxRows, maxColumns, withContent)
        : describe(withContent);
  }

  private boolean isPrintable() {
    return isReleased() || (dataType != DataType.COMPLEX64 && dataType != DataType.UNKNOWN);
  }

  /// Describes the array. For complex numbers, which DJL cannot print, it prints pairs of a real
  /// and an imaginary part.
  private String describe(boolean withContent) {
    String head = "ND: " + getShape() + ' ' + getDevice() + ' ' + dataType;
    if (!withContent || dataType == DataType.UNKNOWN) {
      return head + '\n';
    }
    try (NDArray pairs = real()) {
      return head + " as pairs of\n" + pairs.toDebugString();
    }
  }
}
