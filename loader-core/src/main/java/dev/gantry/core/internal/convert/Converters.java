// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Makes a session's conversions, and holds the kernels that they need on each device. Thread-safe, but
/// [#close] may be called only when nothing is converted.
public final class Converters implements AutoCloseable {
  private final Map<Device.Cuda, CudaConverter> devices = new ConcurrentHashMap<>();
  private final Map<Device.Cuda, CudaNormalizer> normalizers = new ConcurrentHashMap<>();

  /// Converts, and returns when all is done. On a CUDA device, the conversions run after all work that is
  /// queued on the device's default stream.
  ///
  /// @param tasks the conversions, none of which needs the results of another; their memory is on `device`
  /// @throws TransferException if the caller cancels, or the device fails
  /// @throws DeviceUnavailableException if there is no such device
  public void convert(List<Conversion.Task> tasks, Device device, Cancellation cancellation) {
    switch (device) {
      case Device.Host _ -> HostConverter.convert(tasks, cancellation);
      case Device.Cuda cuda -> of(cuda).convert(tasks);
    }
  }

  /// Has the driver compile the kernel for results of dtype `to`, so that the first [#convert] need not wait
  /// for it. This takes 40 ms or more if the driver has not kept the compiled kernel on disk.
  ///
  /// @throws MisuseException if `to` is not one of [Conversion#TARGETS]
  /// @throws DeviceUnavailableException if there is no such device
  public void prepare(DType to, Device device) {
    Conversion _ = Conversion.plain(DType.I8, to, 0);
    switch (device) {
      case Device.Host _ -> {}
      case Device.Cuda cuda -> of(cuda).prepare(to);
    }
  }

  private CudaConverter of(Device.Cuda device) {
    return devices.computeIfAbsent(device, _ -> new CudaConverter(CudaContext.of(device)));
  }

  /// Returns the normaliser of a device. The first call has the driver compile its kernel.
  public CudaNormalizer normalizer(CudaContext context) {
    return normalizers.computeIfAbsent(context.device(), _ -> new CudaNormalizer(context));
  }

  /// Unloads the kernels. None may be running.
  @Override
  public void close() {
    List<Runnable> closers = new ArrayList<>();
    devices.values().forEach(converter -> closers.add(converter::close));
    normalizers.values().forEach(normalizer -> closers.add(normalizer::close));
    try {
      Cleanup.runAll(closers);
    } finally {
      devices.clear();
      normalizers.clear();
    }
  }
}
