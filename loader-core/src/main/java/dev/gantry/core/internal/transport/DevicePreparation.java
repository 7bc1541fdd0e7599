// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.threads.Preparations;
import dev.gantry.core.internal.threads.ReaderGrowth;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// Opens devices in the background, before the first load needs them: the CUDA context takes a quarter
/// of a second, as long as the rest of a process's start. Thread-safe.
public final class DevicePreparation {
  /// The folder that exists on Linux if NVIDIA's kernel driver is loaded.
  private static final Path DRIVER = Path.of("/proc/driver/nvidia");

  private static final String NAME = "gantry-prepare-device";

  private DevicePreparation() {}

  /// Begins to make the context and buffers that a load with default options needs on a device,
  /// and returns without waiting. Failures are ignored, because the load meets the same failure
  /// and reports it.
  ///
  /// @param choice chooses the device; called in the background, since it may have to start libcuda
  public static void begin(Supplier<Device> choice) {
    begin(
        choice,
        device -> warmUp(device, ReaderRule.threads(device, TransferOptions.defaults(), false)));
  }

  /// Begins to open those devices of a load that are not open yet, and makes the buffers of one
  /// reader for each of them. Meanwhile the load is planned and opens its files.
  public static void beginLoad(List<Device> devices) {
    for (Device device : devices) {
      if (device instanceof Device.Cuda cuda && !CudaContext.isOpen(cuda)) {
        begin(() -> cuda, one -> warmUp(one, 1));
      }
    }
  }

  /// Begins to load and initialise libcuda if the host has NVIDIA's driver; does nothing after the
  /// first call in a process. Initialising takes a tenth of a second, and no device memory.
  public static void beginDriver() {
    if (Files.exists(DRIVER)) {
      Preparations.beginOnce("gantry-prepare-driver", CudaDriver::load);
    }
  }

  /// Does the same as [#begin], but makes only the CUDA context, and does nothing if the host does
  /// not have NVIDIA's driver. Mapping memory of other processes needs nothing else.
  public static void beginContext(Supplier<Device> choice) {
    if (Files.exists(DRIVER)) {
      begin(choice, device -> CudaContext.of(device).open());
    }
  }

  /// Makes the context and, at the same time, pinned buffers for readers. The load finds all of
  /// them in the pools. The streams and events of the load's readers are not made here; one reader
  /// is opened only so that its classes are loaded.
  private static void warmUp(Device.Cuda device, int readers) {
    TransferOptions options =
        ReaderRule.ofLoad(List.of(device), Stream.empty(), TransferOptions.defaults());
    long bytes = ReaderRule.ownBufferBytes(options);
    CudaContext context = CudaContext.of(device);
    if (!CudaContext.isOpen(device)) {
      Preparations.begin(NAME, context::open);
    }
    long missing = 2L * readers - context.idlePinnedBytes() / bytes;
    PinnedSlab.prepare(context, (int) Math.max(0, missing), bytes);
    StagedTransport staging =
        Objects.requireNonNull(OnDemandTransfer.staging(device, options, readers));
    Objects.requireNonNull(staging.openReader(() -> true, ReaderGrowth.NONE)).close();
  }

  private static void begin(Supplier<Device> choice, Consumer<Device.Cuda> preparation) {
    Preparations.begin(
        NAME,
        () -> {
          if (choice.get() instanceof Device.Cuda cuda) {
            preparation.accept(cuda);
          }
        });
  }
}
