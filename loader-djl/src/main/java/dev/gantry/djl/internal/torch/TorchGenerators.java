// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.Device;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/// libtorch's default random number generators, one for the CPU and one for each GPU.
///
/// These functions are C++ and report failure by an exception, which would end the JVM. The caller
/// checks all arguments first. Their names are no stable interface: [#absence] says which of them
/// a libtorch lacks. Not thread-safe: no other thread may draw random numbers meanwhile.
public final class TorchGenerators {
  // C++ returns an `at::Tensor`, which is not trivial, through a pointer that the caller passes. C
  // returns a struct of 8 bytes in a register, and one of more than 16 bytes through a pointer.
  private static final StructLayout RETURNED_TENSOR =
      MemoryLayout.structLayout(JAVA_LONG, JAVA_LONG, JAVA_LONG);

  private final NativeSymbols cpuSymbols;
  private final NativeSymbols cudaSymbols;

  // const at::Generator &at::detail::getDefaultCPUGenerator();
  private final MethodHandle cpu;
  // at::Tensor at::Generator::get_state() const;
  private final MethodHandle getState;
  // void at::Generator::set_state(const at::Tensor &new_state);
  private final MethodHandle setState;
  // const at::Generator &at::cuda::detail::getDefaultCUDAGenerator(int8_t index);
  private final MethodHandle cuda;
  // int8_t c10::cuda::device_count() noexcept;
  private final MethodHandle cudaCount;

  /// @param cpuSymbols the symbols of libtorch_cpu
  /// @param cudaSymbols the symbols of libtorch_cuda and of the libraries that it is linked with;
  ///     without a library if this libtorch is for the CPU only
  TorchGenerators(NativeSymbols cpuSymbols, NativeSymbols cudaSymbols) {
    this.cpuSymbols = cpuSymbols;
    this.cudaSymbols = cudaSymbols;
    cpu =
        cpuSymbols.required(
            "_ZN2at6detail22getDefaultCPUGeneratorEv", FunctionDescriptor.of(ADDRESS));
    getState =
        cpuSymbols.required(
            "_ZNK2at9Generator9get_stateEv", FunctionDescriptor.of(RETURNED_TENSOR, ADDRESS));
    setState =
        cpuSymbols.required(
            "_ZN2at9Generator9set_stateERKNS_6TensorE",
            FunctionDescriptor.ofVoid(ADDRESS, ADDRESS));
    cuda =
        cudaSymbols.required(
            "_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa",
            FunctionDescriptor.of(ADDRESS, JAVA_BYTE));
    cudaCount =
        cudaSymbols.required("_ZN3c104cuda12device_countEv", FunctionDescriptor.of(JAVA_BYTE));
  }

  /// Returns why the generator of a device cannot be used; empty if it can.
  public Optional<String> absence(Device device) {
    if (!cpuSymbols.missing().isEmpty()) {
      return Optional.of("libtorch lacks " + String.join(", ", cpuSymbols.missing()));
    }
    return switch (device) {
      case Device.Host() -> Optional.empty();
      case Device.Cuda _ when !cudaSymbols.missing().isEmpty() ->
          Optional.of("libtorch lacks " + String.join(", ", cudaSymbols.missing()));
      case Device.Cuda(int ordinal) when ordinal >= cudaCount() ->
          Optional.of("libtorch sees " + cudaCount() + " GPUs");
      case Device.Cuda _ -> Optional.empty();
    };
  }

  /// Returns the generator of a device, which exists for the life of the process. Call this only
  /// if [#absence] is empty.
  public MemorySegment generator(Device device) {
    try {
      return switch (device) {
        case Device.Host() -> (MemorySegment) cpu.invokeExact();
        case Device.Cuda(int ordinal) -> (MemorySegment) cuda.invokeExact((byte) ordinal);
      };
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }

  /// Returns the state of a generator: a handle of a dense U8 tensor on the CPU, which the caller
  /// deletes.
  public long state(MemorySegment generator) {
    MemorySegment tensor = NativeHeap.allocate(RETURNED_TENSOR.byteSize());
    SegmentAllocator place = (_, _) -> tensor;
    try {
      MemorySegment _ = (MemorySegment) getState.invokeExact(place, generator);
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
    return tensor.address();
  }

  /// @param handle a handle of a tensor that [#state] gave for the same kind of device
  public void setState(MemorySegment generator, long handle) {
    try {
      setState.invokeExact(generator, MemorySegment.ofAddress(handle));
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }

  private int cudaCount() {
    try {
      return (byte) cudaCount.invokeExact();
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }
}
