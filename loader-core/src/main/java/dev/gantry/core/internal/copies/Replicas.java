// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferReport.DeviceReport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Devices that get the same bytes in one load. Each byte is read once, by a reader of one of the
/// devices, and copied to that device. The device copies it on to the devices whose memory it can
/// reach; the reader copies it from its buffer to the remaining devices. Thread-safe.
public final class Replicas {
  private static final Logger LOG = LoggerFactory.getLogger(Replicas.class);

  /// The reasons that were logged, since each is logged only once in a process.
  private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

  private final List<Device> devices;

  /// The reason why a device does not copy bytes on to another device, by the indices of both in
  /// `devices`; empty if it does.
  private final List<List<String>> refusals;

  private final List<LongAdder> fromHost;
  private final List<LongAdder> fromDevices;

  private Replicas(List<Device> devices, List<List<String>> refusals) {
    this.devices = List.copyOf(devices);
    this.refusals = List.copyOf(refusals);
    this.fromHost = devices.stream().map(_ -> new LongAdder()).toList();
    this.fromDevices = devices.stream().map(_ -> new LongAdder()).toList();
  }

  /// Enables access of each device to the memory of the other devices, if the driver allows it.
  ///
  /// @throws MisuseException if a device is named twice, or none is named
  /// @throws dev.gantry.core.DeviceUnavailableException if there is no such device
  public static Replicas of(List<Device> devices) {
    require(devices);
    List<List<String>> refusals = new ArrayList<>();
    for (Device from : devices) {
      refusals.add(devices.stream().map(to -> refusal(from, to)).toList());
    }
    refusals.stream()
        .flatMap(List::stream)
        .filter(reason -> !reason.isEmpty())
        .findFirst()
        .filter(TOLD::add)
        .ifPresent(reason ->
            LOG.info("{}: each device gets all bytes from the host: {}", devices, reason));
    return new Replicas(devices, refusals);
  }

  /// @throws MisuseException if there is no device, or one of them is named twice
  public static void require(List<Device> devices) {
    if (devices.isEmpty()) {
      throw new MisuseException(
          "a load onto several devices must name one device or more (was none)");
    }
    if (new HashSet<>(devices).size() < devices.size()) {
      throw new MisuseException(
          "each device gets one copy (the devices were " + devices + "): name each of them once");
    }
  }

  /// The reason why `from` cannot copy bytes to `to`; empty if it can, or if the two are not
  /// different GPUs.
  public static String refusal(Device from, Device to) {
    return from instanceof Device.Cuda source
            && to instanceof Device.Cuda target
            && !source.equals(target)
        ? CudaContext.of(source).reach(CudaContext.of(target))
        : "";
  }

  /// A reason why some device cannot copy all bytes to all other devices; empty if every device
  /// can.
  public String refusal() {
    return devices.stream().anyMatch(Device.Host.class::isInstance)
        ? "the host gets all bytes, too"
        : refusals.stream()
            .flatMap(List::stream)
            .filter(reason -> !reason.isEmpty())
            .findFirst()
            .orElse("");
  }

  /// The GPUs among the devices. Only GPUs have readers of their own.
  public static List<Device.Cuda> cudaDevices(List<Device> devices) {
    return devices.stream()
        .filter(Device.Cuda.class::isInstance)
        .map(Device.Cuda.class::cast)
        .toList();
  }

  /// Reports the bytes that each device got.
  public List<DeviceReport> report() {
    return IntStream.range(0, devices.size())
        .mapToObj(to ->
            new DeviceReport(
                devices.get(to),
                fromHost.get(to).sum(),
                fromDevices.get(to).sum(),
                refusals.stream()
                    .map(from -> from.get(to))
                    .filter(reason -> !reason.isEmpty())
                    .findFirst()
                    .orElse("")))
        .toList();
  }

  /// The copies of one reader, whose thread alone may use an instance.
  public final class Copies {
    private final int place;
    private final Function<Device.Cuda, CopyQueue> queues;

    /// Actions that queue copies from this reader's device to other devices. They run after the
    /// bytes' copies to this device are queued. Each action copies within one slab: slabs may be
    /// adjacent, but the driver refuses a copy across two allocations.
    private final List<Consumer<CopyQueue>> passed = new ArrayList<>();

    /// @param own the device of this reader
    /// @param queues returns the reader's queue of copies to a device
    public Copies(Device.Cuda own, Function<Device.Cuda, CopyQueue> queues) {
      this.place = devices.indexOf(own);
      this.queues = queues;
    }

    /// Queues copies of a read's bytes from a buffer to devices, and notes the copies that the
    /// reader's own device does for [#queuePassed].
    ///
    /// @param at offset of the bytes in the buffer
    public void copy(List<Slab> slabs, Read read, PinnedSlab buffer, long at) {
      long bytes = read.required();
      for (int to = 0; to < slabs.size(); to++) {
        Slab slab = slabs.get(to);
        if (devices.get(to) instanceof Device.Cuda cuda) {
          if (to == place || !refusals.get(place).get(to).isEmpty()) {
            queues.apply(cuda).copyToDevice(slab.address() + read.slabOffset(), buffer, at, bytes);
            fromHost.get(to).add(bytes);
          } else {
            passOn(to, cuda, slab.address() + read.slabOffset(), slabs.get(place), read);
          }
        } else {
          ((HostSlab) slab)
              .segment()
              .asSlice(read.slabOffset(), bytes)
              .copyFrom(buffer.segment().asSlice(at, bytes));
          fromHost.get(to).add(bytes);
        }
      }
    }

    /// Notes that this reader's device copies a read's bytes to other devices. cuFile has read the
    /// bytes into the device's slab, so no buffer has them.
    public void pass(List<Slab> slabs, Read read) {
      for (int to = 0; to < slabs.size(); to++) {
        Slab slab = slabs.get(to);
        if (to == place) {
          fromHost.get(to).add(read.required());
        } else if (devices.get(to) instanceof Device.Cuda cuda) {
          passOn(to, cuda, slab.address() + read.slabOffset(), slabs.get(place), read);
        } else {
          throw new IllegalStateException("a GPU passes on to GPUs only: " + devices);
        }
      }
    }

    /// The slab of this reader's device.
    public Slab own(List<Slab> slabs) {
      return slabs.get(place);
    }

    private void passOn(int to, Device.Cuda device, long target, Slab source, Read read) {
      CudaContext peer = CudaContext.of(device);
      long from = source.address() + read.slabOffset();
      passed.add(own -> own.copyToPeer(peer, target, from, read.required()));
      fromDevices.get(to).add(read.required());
    }

    /// Queues the noted copies from this device to others, after the copies to the device. They do
    /// not use the buffers.
    public void queuePassed(CopyQueue own) {
      passed.forEach(copy -> copy.accept(own));
      passed.clear();
    }
  }
}
