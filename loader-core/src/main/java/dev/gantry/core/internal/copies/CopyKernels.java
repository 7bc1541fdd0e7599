// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CopyPiece;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaKernel;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// A session's kernels of `copies.cu`, one for each device. Thread-safe, but [#close] may be called
/// only when none is running.
public final class CopyKernels implements AutoCloseable {
  /// Loading a kernel takes up to 40 ms, which pays only for many small copies. Most models have a few hundred.
  private static final int LOADED_AFTER_COPIES = 2000;

  private final Map<CudaContext, OfDevice> devices = new ConcurrentHashMap<>();

  OfDevice of(CudaContext context) {
    return devices.computeIfAbsent(context, OfDevice::new);
  }

  /// The kernel of one device, which is loaded after many small copies without it.
  static final class OfDevice {
    private final CudaContext context;
    private final AtomicLong copies = new AtomicLong();
    private volatile @Nullable CudaKernel kernel;

    OfDevice(CudaContext context) {
      this.context = context;
    }

    /// Counts a small copy, and loads the kernel when there were enough. Other threads copy
    /// without the kernel meanwhile; all threads do if the driver refuses it.
    ///
    /// @return whether [#launch] may be called
    boolean isReady() {
      if (kernel == null && copies.incrementAndGet() == LOADED_AFTER_COPIES) {
        try {
          kernel = CudaKernel.load(context.open(), CopyKernels.class, "copies");
        } catch (TransferException _) {
          return false;
        }
      }
      return kernel != null;
    }

    /// Queues the kernel on a stream. The device's context must be current.
    ///
    /// @param parameter the struct `Copies` of `copies.cu`
    /// @param pieces the number of pieces in it
    void launch(MemorySegment parameter, int pieces, CudaDriver.Stream stream) {
      int blocks = Math.min(pieces, CudaKernel.FETCHING_BLOCKS);
      Objects.requireNonNull(kernel).launch(blocks, CopyPiece.THREADS, parameter, stream);
    }

    private void unload() {
      CudaKernel loaded = kernel;
      if (loaded != null) {
        loaded.unload();
      }
    }
  }

  /// Unloads the kernels; called once.
  @Override
  public void close() {
    Cleanup.forEach(devices.values(), OfDevice::unload);
  }
}
