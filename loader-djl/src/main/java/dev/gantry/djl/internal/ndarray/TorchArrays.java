// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.nn.Parameter;
import ai.djl.pytorch.engine.PtEngine;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.threads.Preparations;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchCodes;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.lang.foreign.Arena;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Makes DJL arrays over memory that the caller owns, and copies between arrays. Thread-safe.
public final class TorchArrays {
  private TorchArrays() {}

  /// Begins to link libtorch's functions and to make the classes of arrays in the background, while
  /// the caller reads bytes; does nothing after the first call in a process.
  ///
  /// @param dtype the dtype of the arrays that the caller will make
  public static void prepare(DType dtype) {
    Preparations.beginOnce("gantry-prepare-arrays", () -> wrapOnce(dtype));
  }

  /// Makes and deletes a tensor, but no array of DJL's: a training that runs at the same time goes
  /// over all arrays of the process.
  static void wrapOnce(DType wanted) {
    DType dtype = PyTorch.dataType(wanted).isPresent() ? wanted : DType.U8;
    TorchLibrary library = PyTorch.library();
    try (Arena memory = Arena.ofConfined()) {
      long address = memory.allocate(Long.BYTES, Long.BYTES).address();
      library.delete(library.wrap(address, Device.HOST, dtype, TensorShape.of(1), () -> {}));
    }
    GuardedClasses.makeClass(PyTorch.isSafe(PyTorch.dataType(dtype).orElseThrow()));
  }

  /// Makes an array over a region, dense in C order. The array takes a share of the region's slab.
  /// Memory that other processes read cannot be changed through the array or a view of it.
  public static NDArray over(
      NDManager manager,
      Region region,
      Device device,
      DType dtype,
      TensorShape shape,
      @Nullable String name) {
    return over(manager, region, device, dtype, shape, TorchCodes.denseStrides(shape), name);
  }

  /// The device of arrays for which no device is asked.
  ///
  /// @throws dev.gantry.core.DeviceUnavailableException if DJL has no PyTorch engine, or no libtorch for it
  public static ai.djl.Device defaultDevice() {
    var _ = PyTorch.library();
    return Engine.getEngine(PtEngine.ENGINE_NAME).defaultDevice();
  }

  /// Makes an array over a region, with strides.
  public static NDArray over(
      NDManager manager,
      Region region,
      Device device,
      DType dtype,
      TensorShape shape,
      long[] strides,
      @Nullable String name) {
    return Cleanup.orUndo(
        region::retain,
        release ->
            wrap(
                manager,
                region.address(),
                device,
                dtype,
                shape,
                strides,
                name,
                region.isReadOnly(),
                release),
        Runnable::run);
  }

  /// Makes an array over memory without a copy, of any dtype for which [PyTorch#dataType] is
  /// present. It belongs to `manager`, whose closing closes the array; the manager may be for
  /// another device.
  ///
  /// `release` is run once, after the array and all views of it are closed, on the thread that
  /// closes the last of them. If the memory is a GPU's, kernels that use it may still be queued
  /// then. If this throws, `release` is never run, and the memory still belongs to the caller.
  ///
  /// @param address the address of the first element, aligned to the element's size; ignored if
  ///     there are no elements
  /// @param strides the distances between adjacent elements along each axis, in elements; 0 or
  ///     more
  /// @throws MisuseException if the manager is not of DJL's PyTorch engine, the address or shape is
  ///     impossible, or no tensor holds the dtype
  /// @throws dev.gantry.core.DeviceUnavailableException if DJL's libtorch cannot be used
  /// @throws dev.gantry.core.TransferException if libtorch refuses
  static NDArray wrap(
      NDManager manager,
      long address,
      Device device,
      DType dtype,
      TensorShape shape,
      long[] strides,
      @Nullable String name,
      boolean readOnly,
      Runnable release) {
    if (!(manager instanceof PtNDManager torchManager)) {
      throw new MisuseException(
          "the manager must be of DJL's PyTorch engine (was " + manager.getClass().getName() + ")");
    }
    Handover handover = new Handover(release);
    long handle = PyTorch.library().wrap(address, device, dtype, shape, strides, handover);
    GantryNDArray array =
        GantryNDArray.over(
            torchManager,
            handle,
            PyTorch.dataType(dtype).orElseThrow(),
            TorchCodes.elements(shape),
            readOnly);
    handover.complete();
    array.setName(name);
    return array;
  }

  /// Makes an array with arbitrary values, dense in C order. No manager closes it.
  ///
  /// @param manager of DJL's PyTorch engine
  /// @throws dev.gantry.core.TransferException if there is too little memory
  public static NDArray create(NDManager manager, ArrayKind kind, ai.djl.Device device) {
    DType dtype = kind.dtype().orElseThrow();
    long handle = PyTorch.library().empty(kind.shape(), dtype, PyTorch.arraysDevice(device));
    NDArray array = over((PtNDManager) manager, handle, dtype, kind.shape());
    NDScope.unregister(array);
    array.detach();
    return array;
  }

  /// Makes a new array, as [#create] does, that the manager closes.
  public static NDArray createOwned(NDManager manager, ArrayKind kind, ai.djl.Device device) {
    NDArray array = create(manager, kind, device);
    array.attach(manager);
    return array;
  }

  /// The address of an array's first element.
  public static long address(NDArray array) {
    return PyTorch.library().address(torchArray(array).getHandle());
  }

  private static GantryNDArray over(
      PtNDManager manager, long handle, DType dtype, TensorShape shape) {
    return GantryNDArray.over(
        manager, handle, PyTorch.dataType(dtype).orElseThrow(), TorchCodes.elements(shape));
  }

  /// Copies the values of `source` into the memory of `target`, cast to the type of `target`. If
  /// `target` is a parameter with gradients, the copy is not recorded for them.
  ///
  /// @param firstRow the row of the target at which the values begin, if the source has fewer rows
  /// @throws MisuseException if either is not an array of DJL's PyTorch engine
  /// @throws dev.gantry.core.TransferException if libtorch refuses
  public static void copy(NDArray source, NDArray target, long firstRow) {
    requireWritable(target);
    if (source.getShape().equals(target.getShape())) {
      unrecorded(torchArray(target), to -> put(torchArray(source), to));
    } else {
      copyInto(source, target, new NDIndex("{}:{}", firstRow, firstRow + source.getShape().get(0)));
    }
  }

  /// Copies through a second tensor over the target's memory, because libtorch refuses to change
  /// the parameters of a TorchScript module that it loaded for inference only.
  private static void put(PtNDArray source, PtNDArray target) {
    TorchLibrary library = PyTorch.library();
    long to = target.getHandle();
    Optional<DType> dtype = library.dtype(to);
    if (dtype.isEmpty()) {
      library.copy(to, source.getHandle());
      return;
    }
    long alias =
        library.wrap(
            library.address(to),
            library.device(to),
            dtype.orElseThrow(),
            library.shape(to),
            library.strides(to),
            () -> {});
    try {
      library.copy(alias, source.getHandle());
    } finally {
      library.delete(alias);
    }
  }

  /// @throws MisuseException if other processes read the array's memory
  public static void requireWritable(NDArray array) {
    if (array instanceof GantryNDArray guarded) {
      guarded.requireWritable();
    }
  }

  /// Returns the array; if other processes read its memory, returns a copy, and closes the array.
  public static NDArray writable(NDArray array) {
    if (!(array instanceof GantryNDArray guarded) || !guarded.isReadOnly()) {
      return array;
    }
    try (array) {
      NDArray copy = array.duplicate();
      copy.setName(array.getName());
      return copy;
    }
  }

  private static void unrecorded(PtNDArray target, Consumer<PtNDArray> action) {
    boolean recorded = target.hasGradient();
    if (recorded) {
      target.setRequiresGradient(false);
    }
    try {
      action.accept(target);
    } finally {
      if (recorded) {
        target.setRequiresGradient(true);
      }
    }
  }

  /// Copies the values of `source` to a part of `target`, as [#copy] does.
  ///
  /// @param index selects a view with the source's shape; with any shape if the source has one
  ///     element
  public static void copyInto(NDArray source, NDArray target, NDIndex index) {
    requireWritable(target);
    unrecorded(
        torchArray(target),
        to -> {
          try (PtNDArray part = torchArray(to.get(index))) {
            put(torchArray(source), part);
          }
        });
  }

  /// The true type of an array; empty for a type that only libtorch knows, such as complex128.
  ///
  /// @throws MisuseException if it is not an array of DJL's PyTorch engine
  /// The index of some positions along one axis.
  public static NDIndex along(NDArray array, int axis, long from, long to) {
    NDIndex index = new NDIndex();
    for (int i = 0; i < array.getShape().dimension(); i++) {
      index = i == axis ? index.addSliceDim(from, to) : index.addAllDim();
    }
    return index;
  }

  static Optional<DType> dtype(NDArray array) {
    return PyTorch.library().dtype(torchArray(array).getHandle());
  }

  /// @throws MisuseException if the parameter's array is closed, as all arrays of a closed model are
  public static void requireOpen(String path, Parameter parameter) {
    if (parameter.isInitialized() && torchArray(parameter.getArray()).isReleased()) {
      throw new MisuseException(
          "the array of parameter '" + path + "' is closed; its model or manager must stay open");
    }
  }

  /// Casts an array to the class that has a handle.
  ///
  /// @throws MisuseException if it is not an array of DJL's PyTorch engine
  public static PtNDArray torchArray(NDArray array) {
    if (array instanceof PtNDArray torchArray) {
      return torchArray;
    }
    throw new MisuseException(
        "the array must be of DJL's PyTorch engine (was " + array.getClass().getName() + ")");
  }

  /// A release that takes effect only after the array was made: if the manager refuses the array,
  /// its tensor is deleted without running the release. If another thread closes the manager, and
  /// thus the array, before [#complete] is called, `complete` runs the release.
  private static final class Handover implements Runnable {
    private enum State {
      BEGUN,
      COMPLETE,
      TENSOR_DEAD
    }

    private final Runnable release;
    private final AtomicReference<State> state = new AtomicReference<>(State.BEGUN);

    Handover(Runnable release) {
      this.release = release;
    }

    void complete() {
      if (!state.compareAndSet(State.BEGUN, State.COMPLETE)) {
        release.run();
      }
    }

    @Override
    public void run() {
      if (!state.compareAndSet(State.BEGUN, State.TENSOR_DEAD)) {
        release.run();
      }
    }
  }
}
