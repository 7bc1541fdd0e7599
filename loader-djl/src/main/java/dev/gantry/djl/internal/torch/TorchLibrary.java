// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// libtorch's C functions. Independent of DJL: it opens any folder with a `libtorch_cpu`.
///
/// A *handle* is the address of an `at::Tensor` on the C++ heap, which is what DJL's `PtNDArray`
/// holds; its owner deletes it, once. Several handles may share one tensor's memory, which lives as
/// long as the last of them. All functions called here report failure by their return value, never
/// by a C++ exception. Thread-safe, as long as different threads use different handles.
public final class TorchLibrary {
  /// All memory of the process, for reads at addresses that libtorch returns.
  private static final MemorySegment MEMORY =
      MemorySegment.ofAddress(0).reinterpret(Long.MAX_VALUE);

  /// The memory to which a function of [#query] writes its result.
  private static final ThreadLocal<MemorySegment> RESULT =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(JAVA_LONG));

  // All of these return AOTITorchError: 0 for success.
  // AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
  private final NativeFunction delete;
  // AOTITorchError aoti_torch_new_tensor_handle(
  //     AtenTensorHandle orig, AtenTensorHandle *new_handle);
  // In libtorch before 2.6:
  // AOTITorchError aoti_torch_assign_tensors_out(AtenTensorHandle src, AtenTensorHandle *ret_dst);
  private final NativeFunction newHandle;
  // AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void **ret);
  private final NativeFunction dataPointer;
  // AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t *ret);
  private final NativeFunction dtype;
  // AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t *ret);
  private final NativeFunction deviceType;
  // AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t *ret);
  private final NativeFunction deviceIndex;
  // AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t *ret);
  private final NativeFunction rank;
  // AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t **ret);
  private final NativeFunction sizes;
  // AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t **ret);
  private final NativeFunction strides;
  // AOTITorchError aoti_torch_empty_strided(
  //     int64_t ndim, const int64_t *sizes, const int64_t *strides,
  //     int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle *ret);
  private final NativeFunction empty;
  // AOTITorchError aoti_torch_copy_(
  //     AtenTensorHandle self, AtenTensorHandle src, int32_t non_blocking);
  private final NativeFunction copy;

  private final TorchCodes codes;
  private final Optional<TensorWrapper> wrapper;
  private final NativeSymbols symbols;
  private final NativeSymbols cudaSymbols;
  private final Path folder;
  private final Optional<TorchOperators> operators;
  private @Nullable TorchGenerators generators;

  private TorchLibrary(Path folder, NativeSymbols symbols, NativeSymbols cudaSymbols) {
    delete = symbols.required("aoti_torch_delete_tensor_object");
    newHandle =
        symbols
            .optional("aoti_torch_new_tensor_handle")
            .or(() -> symbols.optional("aoti_torch_assign_tensors_out"))
            .orElseGet(() -> symbols.required("aoti_torch_new_tensor_handle"));
    dataPointer = symbols.required("aoti_torch_get_data_ptr");
    dtype = symbols.required("aoti_torch_get_dtype");
    deviceType = symbols.required("aoti_torch_get_device_type");
    deviceIndex = symbols.required("aoti_torch_get_device_index");
    rank = symbols.required("aoti_torch_get_dim");
    sizes = symbols.required("aoti_torch_get_sizes");
    strides = symbols.required("aoti_torch_get_strides");
    empty = symbols.required("aoti_torch_empty_strided");
    copy = symbols.required("aoti_torch_copy_");
    codes = new TorchCodes(symbols);
    wrapper = DlPack.wrapper(symbols).or(() -> FromBlobWrapper.find(symbols, codes));
    operators =
        symbols.optional("aoti_torch_call_dispatcher").map(call -> new TorchOperators(call, this));
    this.symbols = symbols;
    this.cudaSymbols = cudaSymbols;
    this.folder = folder;
  }

  /// Loads libtorch from this folder, for the life of the JVM. A library that this process has
  /// loaded from there is used again.
  ///
  /// @throws DeviceUnavailableException that names the missing file or functions
  public static TorchLibrary open(Path folder) {
    Path file = folder.resolve(System.mapLibraryName("torch_cpu"));
    if (!Files.exists(file)) {
      throw new DeviceUnavailableException(file + " does not exist");
    }
    TorchLibrary library;
    NativeSymbols symbols;
    try {
      symbols = new NativeSymbols(SymbolLookup.libraryLookup(file, Arena.global()));
      // Loading libtorch_cuda also registers its kernels.
      NativeSymbols cudaSymbols =
          new NativeSymbols(optional(folder, "torch_cuda").or(optional(folder, "c10_cuda")));
      library = new TorchLibrary(folder, symbols, cudaSymbols);
    } catch (IllegalArgumentException refused) {
      throw new DeviceUnavailableException(file + " cannot be loaded: " + refused.getMessage());
    }
    if (!symbols.missing().isEmpty()) {
      throw new DeviceUnavailableException(file + " lacks " + String.join(", ", symbols.missing()));
    }
    if (library.wrapper.isEmpty()) {
      throw new DeviceUnavailableException(
          file + " has neither at::fromDLPack nor torch_from_blob");
    }
    return library;
  }

  private static SymbolLookup optional(Path folder, String name) {
    Path file = folder.resolve(System.mapLibraryName(name));
    return Files.exists(file)
        ? SymbolLookup.libraryLookup(file, Arena.global())
        : _ -> Optional.empty();
  }

  /// The folder in which the library lies.
  public Path folder() {
    return folder;
  }

  /// Whether the libtorch in a folder computes on GPUs. A libtorch without `libtorch_cuda` accepts a GPU's
  /// memory for a tensor, but can do nothing with that tensor.
  public static boolean isForCuda(Path folder) {
    return Files.exists(folder.resolve(System.mapLibraryName("torch_cuda")));
  }

  /// The native function that [#wrap] calls.
  TensorWrapper wrapper() {
    return wrapper.orElseThrow();
  }

  /// Operators by name; empty if this libtorch is older than 2.7.
  public Optional<TorchOperators> operators() {
    return operators;
  }

  /// The random number generators. A libtorch that has all else may lack them. Few programs need them, so
  /// they are linked at the first call.
  public synchronized TorchGenerators generators() {
    if (generators == null) {
      generators = new TorchGenerators(symbols, cudaSymbols);
    }
    return generators;
  }

  /// A tensor over memory that the caller owns, without a copy: dense, in C order. When the last
  /// tensor or view over it dies, `release` runs, once, on the thread where that happens. If this
  /// throws, `release` has not run and never will: the memory is still the caller's.
  ///
  /// @param address of the first element, aligned to it; ignored where there are no elements
  /// @return a new handle
  /// @throws MisuseException if the address or the shape is impossible, or no tensor holds the
  ///     dtype
  /// @throws TransferException if libtorch refuses
  public long wrap(long address, Device device, DType dtype, TensorShape shape, Runnable release) {
    return wrap(address, device, dtype, shape, TorchCodes.denseStrides(shape), release);
  }

  /// Does what [#wrap(long, Device, DType, TensorShape, Runnable)] does, for elements that do not lie end to
  /// end.
  ///
  /// @param strides from one element to the next along each axis, in elements; 0 or more
  public long wrap(
      long address,
      Device device,
      DType dtype,
      TensorShape shape,
      long[] strides,
      Runnable release) {
    int _ = codes.of(dtype);
    long elements = TorchCodes.elements(shape);
    TorchCodes.checkReach(dtype, shape, strides);
    if (elements > 0 && (address == 0 || address % dtype.alignmentBytes() != 0)) {
      throw new MisuseException(
          String.format("elements of %s cannot lie at the address 0x%x", dtype, address));
    }
    return elements == 0
        ? wrapNothing(device, dtype, shape, strides, release)
        : wrapMemory(address, device, dtype, shape, strides, release);
  }

  /// A tensor without elements. libtorch asks the driver which GPU an address belongs to, and there is
  /// no address here; so this wraps on the CPU and moves the tensor. On a GPU, `release` runs at once.
  private long wrapNothing(
      Device device, DType dtype, TensorShape shape, long[] strides, Runnable release) {
    // libtorch calls no deleter for a null address. This one is never read.
    long onHost = wrapMemory(Long.BYTES, Device.HOST, dtype, shape, strides, release);
    if (device.equals(Device.HOST)) {
      return onHost;
    }
    try {
      return move(onHost, device);
    } finally {
      delete(onHost);
    }
  }

  private long wrapMemory(
      long address,
      Device device,
      DType dtype,
      TensorShape shape,
      long[] strides,
      Runnable release) {
    long number = Releases.number();
    long handle = wrapper().wrap(address, device, dtype, shape, strides, number);
    try {
      Releases.handOver(number, release);
    } catch (OutOfMemoryError noMemory) {
      delete(handle);
      throw noMemory;
    }
    return handle;
  }

  /// A second handle for the same tensor.
  public long share(long handle) {
    return query(newHandle, handle);
  }

  public void delete(long handle) {
    check(delete, delete.call(handle), "a tensor");
  }

  /// The address of the first element.
  public long address(long handle) {
    return query(dataPointer, handle);
  }

  /// The dtype, or empty for one that only libtorch knows, such as complex128.
  public Optional<DType> dtype(long handle) {
    return codes.dtype(dtypeCode(handle));
  }

  public Device device(long handle) {
    return codes.device((int) query(deviceType, handle), (int) query(deviceIndex, handle));
  }

  public TensorShape shape(long handle) {
    return TensorShape.of(perAxis(sizes, handle));
  }

  /// Elements from one neighbour to the next along each axis.
  public long[] strides(long handle) {
    return perAxis(strides, handle);
  }

  /// A new tensor with the same values in another dtype, on another device, or both; dense whatever
  /// the source is.
  public long convert(long source, DType dtype, Device device) {
    return convert(source, codes.of(dtype), device);
  }

  /// A new tensor with the same values and dtype on a device; the dtype may be one that [DType] lacks.
  public long move(long source, Device device) {
    return convert(source, dtypeCode(source), device);
  }

  /// A new tensor whose elements all equal the only element of the tensor `value`.
  public long filled(TensorShape shape, DType dtype, Device device, long value) {
    return withValues(empty(shape, codes.of(dtype), device), value);
  }

  /// A new tensor, dense, with arbitrary values.
  public long empty(TensorShape shape, DType dtype, Device device) {
    return empty(shape, codes.of(dtype), device);
  }

  private long convert(long source, int dtypeCode, Device device) {
    return withValues(empty(shape(source), dtypeCode, device), source);
  }

  /// Copies values into an existing tensor, cast to its dtype and moved to its device.
  ///
  /// @throws TransferException if libtorch refuses, as it does where a gradient is recorded
  public void copy(long target, long source) {
    long error = copy.call(target, source);
    if ((int) error != 0) {
      check(copy, error, shape(source).toString());
    }
  }

  private long withValues(long target, long source) {
    try {
      copy(target, source);
      return target;
    } catch (TransferException refused) {
      delete(target);
      throw refused;
    }
  }

  private long empty(TensorShape shape, int dtypeCode, Device device) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(ADDRESS);
      long error =
          empty.call(
              shape.rank(),
              arena.allocateFrom(JAVA_LONG, shape.toArray()).address(),
              arena.allocateFrom(JAVA_LONG, TorchCodes.denseStrides(shape)).address(),
              dtypeCode,
              codes.deviceType(device),
              TorchCodes.deviceIndex(device),
              result.address());
      check(empty, error, shape + " on " + device);
      return result.get(JAVA_LONG, 0);
    }
  }

  private int dtypeCode(long handle) {
    return (int) query(dtype, handle);
  }

  private long[] perAxis(NativeFunction function, long handle) {
    long[] values = new long[(int) query(rank, handle)];
    // The result points into the tensor, so it is copied before anything else can change it.
    MemorySegment.copy(MEMORY, JAVA_LONG, query(function, handle), values, 0, values.length);
    return values;
  }

  /// Calls `function(handle, &result)` and returns the 8 bytes of result; if that is an `int`, only the lower half
  /// counts.
  private static long query(NativeFunction function, long handle) {
    MemorySegment result = RESULT.get();
    check(function, function.call(handle, result.address()), "a tensor");
    return result.get(JAVA_LONG, 0);
  }

  private static void check(NativeFunction function, long error, String subject) {
    // AOTITorchError is an int.
    if ((int) error != 0) {
      throw new TransferException(function.name(), subject, new Failure.Torch((int) error));
    }
  }
}
