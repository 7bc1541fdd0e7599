// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.threads.ReaderGrowth;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;

/// Opens devices in the background, before the first load needs them: the CUDA context takes a quarter
/// of a second, as long as the rest of a process's start. Thread-safe.
public final class DevicePreparation {
  private static final Set<Thread> RUNNING = ConcurrentHashMap.newKeySet();

  /// What NVIDIA's driver shows on Linux.
  private static final Path DRIVER = Path.of("/proc/driver/nvidia");

  private static final AtomicBoolean DRIVER_BEGUN = new AtomicBoolean();

  private DevicePreparation() {}

  /// Makes the JVM's exit wait for the preparations: libcuda must not be torn down while it starts.
  private static final class ExitHook {
    static {
      Runtime.getRuntime().addShutdownHook(new Thread(DevicePreparation::await));
    }

    static void add() {}
  }

  /// Begins to make what a load with default options needs on a device, and returns. Failures are ignored: the load
  /// meets them again, and reports them.
  ///
  /// @param choice chooses the device; called in the background, since it may have to start libcuda
  public static void begin(Supplier<Device> choice) {
    begin(choice, DevicePreparation::warmUp);
  }

  /// Begins to load and initialise libcuda where the host has NVIDIA's driver, once a process: that takes a tenth of a
  /// second, and no memory of a device.
  public static void beginDriver() {
    if (Files.exists(DRIVER) && DRIVER_BEGUN.compareAndSet(false, true)) {
      start(CudaDriver::load);
    }
  }

  /// Does the same as [#begin], but makes only the CUDA context, which is enough for mapping memory of other processes.
  public static void beginContext(Supplier<Device> choice) {
    begin(choice, CudaContext::of);
  }

  /// Makes the context, streams, events and pinned buffers, and leaves them to be reused.
  private static void warmUp(Device.Cuda device) {
    TransferOptions options = TransferOptions.defaults();
    int threads = ReaderRule.threads(device, options, false);
    StagedTransport staging =
        Objects.requireNonNull(OnDemandTransfer.staging(device, options, threads));
    List<StagedTransport.Reader> readers = new ArrayList<>();
    try {
      while (readers.size() < threads) {
        readers.add(Objects.requireNonNull(staging.openReader(() -> true, ReaderGrowth.NONE)));
      }
    } finally {
      Cleanup.runAll(readers.stream().<Runnable>map(reader -> reader::close).toList());
    }
  }

  private static void begin(Supplier<Device> choice, Consumer<Device.Cuda> preparation) {
    start(() -> {
      if (choice.get() instanceof Device.Cuda cuda) {
        preparation.accept(cuda);
      }
    });
  }

  private static void start(Runnable work) {
    ExitHook.add();
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .inheritInheritableThreadLocals(false)
            .name("gantry-prepare")
            .unstarted(() -> {
              try {
                work.run();
              } catch (DeviceUnavailableException | TransferException _) {
                // The load meets the same failure, and reports it.
              } finally {
                RUNNING.remove(Thread.currentThread());
              }
            });
    RUNNING.add(thread);
    thread.start();
  }

  /// Waits for the preparations that have begun.
  static void await() {
    RUNNING.forEach(Cleanup::join);
  }
}
