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
/// DJL 0.35's native code knows eight dtypes ([PyTorch#isSafe]) and ends the JVM on the others. The
/// methods here that would reach it with another dtype go through libtorch's C functions instead, or
/// throw a [MisuseException].
///
/// Arrays of the eight dtypes cost what DJL's own cost: their operations are DJL's, and return
/// DJL's arrays. Only copies, casts and results of another dtype come back as this class. An array
/// of any other dtype returns this class from every method. So does one of more than 2³¹-1 elements
/// for results as large, because DJL reads a wrong element for an index past that. [GuardedClasses] makes the two
/// subclasses that do so.
///
/// Three cases stay outside, because DJL's own arrays and managers start them: `create`, `zeros`,
/// `ones` and `full` of `NDManager` with another dtype; methods of an array of DJL's own that name
/// another dtype, or that take an operand of one; and `backward` from a BF16 array. [Guards#guard] takes
/// over an array of DJL's own.
///
/// Callers who hold a `PtNDArray` and call its `getNDArrayInternal` get DJL's operations; callers by
/// the interface `NDArray`, as DJL's blocks are, get guarded ones.
///
/// As thread-safe as DJL's own arrays.
public abstract class GantryNDArray extends PtNDArray {
  private static final int LARGEST_BUFFER_BYTES = Integer.MAX_VALUE - 8;
  static final int COMPLEX128_BYTES = 16;

  /// The array that this one took over. It may hold the Java buffer that the native tensor points
  /// into, so it lives as long as this array.
  private final AtomicReference<@Nullable PtNDArray> source;

  private DataType dataType;

  /// Whether other processes read the memory, so that this one must not write to it.
  private boolean readOnly;

  private volatile @Nullable Runnable beforeUse;

  private @Nullable NDArrayEx operations;

  /// @param dataType UNKNOWN for a dtype that DJL has no name for, such as complex128
  GantryNDArray(PtNDManager manager, long handle, DataType dataType) {
    // Before the manager has the array, which it may close from then on.
    source = new AtomicReference<>();
    super(manager, handle);
    this.dataType = dataType;
  }

  /// An array over a handle, which it owns from here on; it belongs to `manager`. If this throws,
  /// the handle is deleted.
  ///
  /// @param dataType the handle's; UNKNOWN for a dtype that DJL has no name for
  /// @param elements how many the handle's tensor has
  /// @throws IllegalStateException if the manager is closed or capped
  static GantryNDArray over(PtNDManager manager, long handle, DataType dataType, long elements) {
    return over(manager, handle, dataType, elements, false);
  }

  /// @param readOnly whether operations that would change the array, or a view of it, are refused
  static GantryNDArray over(
      PtNDManager manager, long handle, DataType dataType, long elements, boolean readOnly) {
    // A read-only array counts as unsafe, so that all its results are checked: views of it must be
    // read-only,
    // too.
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

  /// Sets what runs before each use of the array; it may throw to refuse the use. Null for nothing.
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

  /// Turns an array that DJL's own method has made into what this array's method returns.
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

  /// Returns what callers by the interface `NDArray` get from `getNDArrayInternal`.
  final NDArrayEx operations() {
    if (operations == null) {
      operations = GuardedClasses.operations(this, getNDArrayInternal());
    }
    return operations;
  }

  /// The array that holds the Java buffer which this one may lie in.
  final PtNDArray bufferHolder() {
    PtNDArray taken = source.get();
    return taken == null ? this : taken;
  }

  /// The true type: also BFLOAT16, INT16 and the unsigned ones, which DJL's own arrays call
  /// UNKNOWN.
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

  /// Idempotent. The memory is released when the last view of it is closed too.
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

  /// @param copy whether to copy even if it is there already
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

  /// Gradients flow back through the cast; through DJL's own they do not.
  ///
  /// @param copy whether to copy even if it is of that type already
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

  /// An array of this one's name over a new handle. Like DJL's own, it belongs to this one's
  /// manager, or to a new one below it if that is for another device.
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

  /// @throws MisuseException for a single index past 2³¹-1 beside one that is none, such as a
  ///     slice: take a slice of one instead
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

  /// DJL casts a single index to int, and so reads another element for one past that (measured:
  /// 0.35.1).
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
              "a single index past 2147483647 cannot stand beside a slice; take i:i+1 instead");
        })
        .toArray();
  }

  /// The bytes in C order and the machine's byte order.
  ///
  /// @param tryDirect for memory of the CPU, no copy: valid as long as this array, if it is
  ///     contiguous
  /// @throws MisuseException if they are more than a buffer can hold (2 GiB)
  @Override
  public ByteBuffer toByteBuffer(boolean tryDirect) {
    int elementBytes =
        dataType == DataType.UNKNOWN
            ? COMPLEX128_BYTES
            : PyTorch.dtype(dataType).bits() / Byte.SIZE;
    // With more bytes, DJL's native code would write past the end of its Java array.
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

  /// Takes arrays of BF16, F16 and F32.
  @Override
  public float[] toFloatArray() {
    if (dataType != DataType.BFLOAT16) {
      return super.toFloatArray();
    }
    try (PtNDArray floats = toType(DataType.FLOAT32, true)) {
      return floats.toFloatArray();
    }
  }

  /// Takes arrays of I64, and of U64, whose bits it keeps.
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

  /// DJL has no text for complex numbers: this prints pairs of a real and an imaginary part.
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
