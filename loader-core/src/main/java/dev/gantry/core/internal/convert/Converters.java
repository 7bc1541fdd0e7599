// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaKernel;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Does a session's conversions, and holds the kernels for them on each device. Thread-safe, but
/// [#close] may be called only when no conversion is running.
public final class Converters implements AutoCloseable {
  /// @param what a kernel's name, or what a formula's kernel computes
  private record Entry(CudaContext context, Object what) {}

  private record Made(FormulaTape tape, DType to) {}

  private final Map<Entry, CudaKernel> kernels = new ConcurrentHashMap<>();
  private final Map<CudaContext, Availability<CudaPictures>> pictures = new ConcurrentHashMap<>();
  private final List<Runnable> closing = List.of(this::closePictures, this::unloadKernels);

  /// Runs the conversions, and returns when all are done. On a CUDA device, the conversions run
  /// after all work that is queued on the device's default stream.
  ///
  /// @param tasks the conversions, none of which needs the results of another; their memory is on `device`
  /// @throws TransferException if the caller cancels, or the device fails
  /// @throws DeviceUnavailableException if there is no such device
  public void convert(List<Dequantisation.Task> tasks, Device device, Cancellation cancellation) {
    switch (device) {
      case Device.Host _ -> HostFormula.convert(tasks, cancellation);
      case Device.Cuda cuda -> new CudaConverter(this, CudaContext.of(cuda)).convert(tasks);
    }
  }

  /// Has the driver compile the kernel for a formula, so that the first [#convert] does not wait
  /// for the compilation. It takes 40 ms or more, unless the driver has kept the compiled kernel
  /// on disk.
  ///
  /// @throws DeviceUnavailableException if there is no such device
  public void prepare(Dequantisation what, Device device) {
    switch (device) {
      case Device.Host _ -> {}
      case Device.Cuda cuda -> {
        CudaKernel _ = kernel(CudaContext.of(cuda), what.tape(), what.to());
      }
    }
  }

  /// Returns the kernel of a formula. The first call has the driver compile it.
  CudaKernel kernel(CudaContext context, FormulaTape tape, DType to) {
    return kernels.computeIfAbsent(
        new Entry(context, new Made(tape, to)),
        _ -> CudaKernel.compile(context.open(), FormulaPtx.of(tape, to), FormulaPtx.ENTRY));
  }

  /// Returns a kernel of a device. The first call has the driver compile it.
  ///
  /// @param entry as in [CudaKernel#load]; the PTX file lies beside this class
  CudaKernel kernel(CudaContext context, String entry) {
    return kernels.computeIfAbsent(
        new Entry(context, entry), _ -> CudaKernel.load(context.open(), Converters.class, entry));
  }

  /// Queues the kernel that normalises samples, as [CudaNormalizer#launch] does.
  public void normalize(
      CudaContext context, NormalizedRows rows, long table, CudaDriver.Stream stream) {
    CudaNormalizer.launch(kernel(context, CudaNormalizer.ENTRY), rows, table, stream);
  }

  /// Returns the decoder of pictures on a device; absent if libnvjpeg is not installed.
  public Availability<CudaPictures> pictures(CudaContext context) {
    return pictures.computeIfAbsent(context, _ -> CudaPictures.of(context, this));
  }

  /// Unloads the kernels. None may be running.
  @Override
  public void close() {
    Cleanup.runAll(closing);
  }

  private void closePictures() {
    Cleanup.forEach(pictures.values(), made -> made.toOptional().ifPresent(CudaPictures::close));
    pictures.clear();
  }

  private void unloadKernels() {
    Cleanup.forEach(kernels.values(), CudaKernel::unload);
    kernels.clear();
  }
}
