package dev.gantry.djl.internal;

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
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// An array of DJL's PyTorch engine that may have any dtype that libtorch knows, and whose memory
/// may be somebody else's.
///
/// DJL 0.35's native code ends the process when it is handed a dtype outside its list of eight, and
/// so do many methods of its own arrays of BF16, I16, U16, U32, U64. Here each of them takes
/// another way, or throws a [MisuseException]. What these methods return is guarded in the same
/// way, so that no chain of calls leaves the guard.
///
/// Beyond its reach, because they start elsewhere: `NDManager`'s `create`, `zeros`, `ones` and
/// `full` with such a dtype; operations of an array that is not guarded and has a guarded operand
/// (an embedding of unguarded indices in a guarded BF16 table); and a gradient collector's
/// `backward` from a BF16 array. [#guard] brings such results back.
///
/// Its operations are guarded for callers by DJL's interfaces, as blocks are: see [ArrayClass]. Who
/// calls `getNDArrayInternal` of a `PtNDArray` gets DJL's own.
///
/// Threads: as DJL's arrays.
public abstract class GantryNDArray extends GuardedReading {
  private @Nullable DataType dataType;
  private @Nullable GuardedOperations operations;

  GantryNDArray(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  /// An array over a handle, which it owns from here on; it belongs to `manager`. If this throws,
  /// the handle is deleted.
  static GantryNDArray over(PtNDManager manager, long handle) {
    try {
      return ArrayClass.make(manager, handle);
    } catch (RuntimeException refused) {
      // A closed or capped manager.
      PyTorch.library().delete(handle);
      throw refused;
    }
  }

  /// The dtype, or empty for one that only libtorch knows, such as complex128.
  public Optional<DType> dtype() {
    return PyTorch.library().dtype(getHandle());
  }

  /// The true type: also BFLOAT16, INT16 and the unsigned ones, which DJL's own arrays call
  /// UNKNOWN.
  @Override
  public DataType getDataType() {
    if (dataType == null) {
      dataType = dtype().flatMap(PyTorch::dataType).orElse(DataType.UNKNOWN);
    }
    return dataType;
  }

  @Override
  public void intern(NDArray replaced) {
    super.intern(replaced);
    dataType = null;
  }

  /// What [ArrayClass] has callers by DJL's interfaces get.
  final NDArrayEx operations() {
    if (operations == null) {
      operations = new GuardedOperations(this, getNDArrayInternal());
    }
    return operations;
  }

  /// @param copy whether to copy even if it is there already
  @Override
  public PtNDArray toDevice(Device device, boolean copy) {
    if (device.equals(getDevice())) {
      return copy ? duplicate() : this;
    }
    if (PyTorch.isSafe(getDataType())) {
      return guard(super.toDevice(device, true));
    }
    return made(PyTorch.library().move(getHandle(), PyTorch.device(device)), device);
  }

  /// Gradients flow back through the cast; through DJL's own they do not.
  ///
  /// @param copy whether to copy even if it is of that type already
  /// @throws MisuseException if no number has this type
  @Override
  public PtNDArray toType(DataType type, boolean copy) {
    if (type == getDataType()) {
      return copy ? duplicate() : this;
    }
    if (isSparse() && PyTorch.isSafe(type)) {
      return guard(super.toType(type, true));
    }
    return made(
        PyTorch.library().convert(getHandle(), PyTorch.dtype(type), PyTorch.device(getDevice())),
        getDevice());
  }

  @Override
  public PtNDArray duplicate() {
    return (PtNDArray) guard(super.duplicate());
  }

  /// @throws MisuseException for integers and complex numbers
  @Override
  public PtNDArray softmax(int axis) {
    if (PyTorch.isSafe(getDataType())) {
      return guard(super.softmax(axis));
    }
    try (PtNDArray floats = widened("softmax");
        PtNDArray result = floats.softmax(axis)) {
      return result.toType(getDataType(), true);
    }
  }

  /// @throws MisuseException for integers and complex numbers
  @Override
  public PtNDArray logSoftmax(int axis) {
    if (PyTorch.isSafe(getDataType())) {
      return guard(super.logSoftmax(axis));
    }
    try (PtNDArray floats = widened("logSoftmax");
        PtNDArray result = floats.logSoftmax(axis)) {
      return result.toType(getDataType(), true);
    }
  }

  @Override
  public NDArray cumProd(int axis, @Nullable DataType type) {
    if (type == null || PyTorch.isSafe(type)) {
      return guard(super.cumProd(axis, type));
    }
    try (PtNDArray converted = toType(type, true)) {
      return converted.cumProd(axis);
    }
  }

  @Override
  public NDArray oneHot(int depth) {
    return oneHot(depth, DataType.FLOAT32);
  }

  @Override
  public NDArray oneHot(int depth, DataType type) {
    if (PyTorch.isSafe(type)) {
      return guard(super.oneHot(depth, type));
    }
    try (NDArray whole = guard(super.oneHot(depth, DataType.INT64))) {
      return whole.toType(type, true);
    }
  }

  @Override
  public NDArray zerosLike() {
    return PyTorch.isSafe(getDataType()) ? guard(super.zerosLike()) : filled(0);
  }

  @Override
  public NDArray onesLike() {
    return PyTorch.isSafe(getDataType()) ? guard(super.onesLike()) : filled(1);
  }

  /// A new array of this shape, of FLOAT32 whatever this one's type is, with arbitrary values: as
  /// DJL has it.
  @Override
  public NDArray like() {
    return guard(super.like());
  }

  @Override
  public PtNDArray getGradient() {
    return guard(super.getGradient());
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
    return guard(super.get(manager, index));
  }

  /// DJL passes a single index on as an int, and reads another element for one that is none
  /// (measured: 0.35.1).
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

  @Override
  public NDArray stack(NDArray array, int axis) {
    return operations().stack(new NDList(array), axis);
  }

  @Override
  public NDArray concat(NDArray array, int axis) {
    return operations().concat(new NDList(array), axis);
  }

  private PtNDArray widened(String operation) {
    if (getDataType() != DataType.BFLOAT16) {
      throw new MisuseException(operation + " of " + getDataType() + " is not defined");
    }
    return toType(DataType.FLOAT32, true);
  }

  private PtNDArray filled(long value) {
    try (PtNDArray scalar = (PtNDArray) getManager().create(value)) {
      return made(
          PyTorch.library()
              .filled(
                  PyTorch.shape(getShape()),
                  PyTorch.dtype(getDataType()),
                  PyTorch.device(getDevice()),
                  scalar.getHandle()),
          getDevice());
    }
  }

  /// An array of this one's name over a new handle. Like DJL's own, it belongs to this one's
  /// manager, or to a new one below it if that is for another device.
  private PtNDArray made(long handle, Device device) {
    PtNDManager manager = getManager();
    PtNDArray array =
        over(device.equals(manager.getDevice()) ? manager : manager.newSubManager(device), handle);
    array.setName(getName());
    return array;
  }
}
