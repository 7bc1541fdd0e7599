// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaPointers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// The primary context of one CUDA device. libtorch uses the same context, so libtorch and Gantry
/// can use each other's memory.
///
/// A context is retained at its first use, once a process, and never released, since NDArrays over
/// its memory may outlive every session. A context also keeps idle streams, events and memory of
/// the device for the next load or ring of any session; any session may free them. Thread-safe.
public final class CudaContext implements HostMemory.Keeper {
  private static final long AWAKE_NANOS = 500_000;
  private static final int OWN_WINDOWS = 6;

  /// The flag `IORESOURCE_PREFETCH` of `linux/ioport.h`.
  private static final long PREFETCHABLE = 0x2000;

  private static final Map<Integer, CudaContext> CONTEXTS = new ConcurrentHashMap<>();

  /// Idle device memory is freed sooner than pinned memory, since libtorch may need it.
  private static final long DEVICE_KEPT_NANOS = 3_000_000_000L;

  private static final long PINNED_KEPT_NANOS = 10_000_000_000L;

  private static final long MAX_IDLE_PINNED_BYTES = 1L << 30;

  /// At most a quarter of a device's memory is kept idle, and none while less than a 32nd is free.
  private static final int IDLE_PART = 4;

  private static final int SPARED_PART = 32;

  private final CudaDriver driver;
  private final int ordinal;
  private final IdleStreams streams = new IdleStreams(this);
  private final ReentrantLock allocating = new ReentrantLock();

  /// Null until the context is first used.
  private volatile CudaDriver.@Nullable Context context;

  private final Pool<DeviceSlab.Block> idleDevice =
      new Pool<>(
          LiveResources.Kind.DEVICE_BYTES,
          DEVICE_KEPT_NANOS,
          this::maxIdleDeviceBytes,
          block -> DeviceSlab.free(this, block));

  private final Pool<PinnedSlab.Pages> idlePinned =
      new Pool<>(
          LiveResources.Kind.PINNED_BYTES,
          PINNED_KEPT_NANOS,
          () -> MAX_IDLE_PINNED_BYTES,
          pages -> PinnedSlab.free(this, pages));

  private CudaContext(CudaDriver driver, int ordinal) {
    this.driver = driver;
    this.ordinal = ordinal;
  }

  /// The most bytes of idle device memory. If the device does not report its free memory, this is
  /// 0: asking must not make the caller's freeing of memory fail.
  private long maxIdleDeviceBytes() {
    try (var _ = enter()) {
      CudaDriver.MemoryInfo memory = driver.memoryInfo();
      long total = memory.totalBytes();
      return memory.freeBytes() < total / SPARED_PART ? 0 : total / IDLE_PART;
    } catch (TransferException _) {
      return 0;
    }
  }

  @Override
  public long unusedBytes() {
    return idlePinned.size();
  }

  @Override
  public void giveUp(long bytes) {
    idlePinned.free();
  }

  /// Frees the idle streams, events and memory of all devices.
  public static void freeIdle() {
    List<Runnable> actions = new ArrayList<>();
    for (CudaContext each : CONTEXTS.values()) {
      actions.addAll(List.of(each.idleDevice::free, each.idlePinned::free, each.streams::free));
    }
    Cleanup.runAll(actions);
  }

  /// The lock that a load holds while it checks and allocates the device's memory, so that two
  /// loads do not each take a part of memory that is enough for one of them only.
  ReentrantLock allocating() {
    return allocating;
  }

  /// The streams and events that are kept for reuse.
  public IdleStreams streams() {
    return streams;
  }

  /// The device memory of former slabs, kept for reuse.
  Pool<DeviceSlab.Block> idleDevice() {
    return idleDevice;
  }

  /// The pinned memory of former slabs, kept for reuse.
  Pool<PinnedSlab.Pages> idlePinned() {
    return idlePinned;
  }

  /// Whether the device's context is retained already, so that its next use does not wait.
  public static boolean isOpen(Device.Cuda device) {
    CudaContext one = CONTEXTS.get(device.ordinal());
    return one != null && one.context != null;
  }

  /// Retains the context unless it is retained already. Retaining takes a tenth of a second in a
  /// new process.
  ///
  /// @throws TransferException if the device refuses the context, for example because it has too
  ///     little memory; the next call tries again
  public CudaDriver.Context open() {
    CudaDriver.Context opened = context;
    return opened == null ? retain() : opened;
  }

  private synchronized CudaDriver.Context retain() {
    CudaDriver.Context opened = context;
    if (opened == null) {
      opened = driver.retainPrimaryContext(ordinal);
      context = opened;
    }
    return opened;
  }

  /// The pinned memory of this device that nothing uses now, in bytes.
  public long idlePinnedBytes() {
    return idlePinned.size();
  }

  /// The context of a device. This does not wait for the device; the first use of the context
  /// does. Returning a context again needs no heap.
  ///
  /// @throws DeviceUnavailableException if there is no CUDA driver or no such device
  public static CudaContext of(Device.Cuda device) {
    return CONTEXTS.computeIfAbsent(device.ordinal(), CudaContext::make);
  }

  private static CudaContext make(int ordinal) {
    Device.Cuda device = new Device.Cuda(ordinal);
    CudaDriver driver =
        CudaDriver.load()
            .orElseThrow(
                reason -> new DeviceUnavailableException(device + " is not available: " + reason));
    int count = driver.deviceCount();
    if (ordinal >= count) {
      throw new DeviceUnavailableException(
          device + " is not available: this host has " + count + " CUDA device(s)");
    }
    CudaContext made = new CudaContext(driver, ordinal);
    HostMemory.add(made);
    return made;
  }

  public Device.Cuda device() {
    return new Device.Cuda(ordinal);
  }

  public CudaDriver driver() {
    return driver;
  }

  /// The allocation that contains `address`; absent with the reason if the driver knows none.
  public Availability<CudaPointers.Allocation> allocation(long address) {
    try (var _ = enter()) {
      return CudaPointers.allocation(address);
    }
  }

  /// The size in bytes of the device's BAR1 window, through which other PCIe devices reach its
  /// memory; 0 if sysfs does not tell.
  public long barBytes() {
    return barBytes(Path.of("/sys/bus/pci/devices", driver.pciAddress(ordinal), "resource"));
  }

  /// Reads the size of BAR1 from a `resource` file of sysfs. Each line has the start, end and
  /// flags of a window; the device's own windows come before those of bridges. BAR1 is not always
  /// the second window, but always the largest prefetchable one.
  static long barBytes(Path windows) {
    try {
      long most = 0;
      for (String line : Files.readAllLines(windows).stream().limit(OWN_WINDOWS).toList()) {
        String[] window = line.split(" ", 3);
        long start = Long.decode(window[0]);
        long end = Long.decode(window[1]);
        if (end > start && (Long.decode(window[2]) & PREFETCHABLE) != 0) {
          most = Math.max(most, end - start + 1);
        }
      }
      return most;
    } catch (IOException | IndexOutOfBoundsException | NumberFormatException _) {
      return 0;
    }
  }

  /// Waits for all work queued on the device, on any stream.
  public void synchronize() {
    try (var _ = enter()) {
      driver.synchronizeContext();
    }
  }

  /// Waits for all work queued on the device, after another wait has failed.
  ///
  /// @return whether the wait succeeded; if not, copies may still be running
  public boolean comesToRest() {
    try {
      synchronize();
      return true;
    } catch (TransferException _) {
      return false;
    }
  }

  /// Waits for an event: spins for half a millisecond, then sleeps. Most copies finish sooner than a sleeping thread
  /// wakes up.
  public void await(CudaDriver.Event event) {
    long begin = System.nanoTime();
    try (var _ = enter()) {
      while (!driver.isDone(event)) {
        if (System.nanoTime() - begin > AWAKE_NANOS) {
          driver.synchronize(event);
          return;
        }
        Thread.onSpinWait();
      }
    }
  }

  /// Lets this device copy to the memory of `peer` without the host, for as long as the process
  /// runs.
  ///
  /// @return empty if it may, else the reason why it may not
  public String reach(CudaContext peer) {
    try (var _ = enter()) {
      return driver.reach(ordinal, peer.ordinal, peer.open());
    }
  }

  /// Queues a copy of this device's memory to the memory of `peer`.
  public void copyToPeer(
      CudaContext peer, long target, long source, long bytes, CudaDriver.Stream stream) {
    try (var _ = enter()) {
      driver.copyToPeer(target, peer.open(), source, open(), bytes, stream);
    }
  }

  /// Makes this context current on the calling thread until the scope closes.
  public CudaDriver.Entered enter() {
    return driver.enter(open());
  }
}
