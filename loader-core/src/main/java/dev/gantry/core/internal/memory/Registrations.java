// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.RegistrationEvent;
import dev.gantry.core.internal.natives.CuFile;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Slabs registered with cuFile, so that a disk writes into them without a bounce buffer.
///
/// A registered slab takes its size in its GPU's BAR1 window, so each device has a budget. cuFile
/// copies through a bounce buffer for slabs that do not fit or are refused. Each slab is deregistered
/// before it is freed. Thread-safe.
public final class Registrations {
  private static final Logger LOG = LoggerFactory.getLogger(Registrations.class);

  /// @param refusal why cuFile did not register the slab; empty if it did
  private record Entry(MemorySegment memory, String refusal) {
    boolean isRegistered() {
      return refusal.isEmpty();
    }
  }

  private final CuFile cuFile;
  private final ToLongFunction<CudaContext> budgetBytes;
  private final Map<Device, Long> bytesLeft = new HashMap<>();
  private final Map<DeviceSlab, Entry> entries = new HashMap<>();

  /// @param budgetBytes the most bytes to register at once on a device; asked once for each
  public Registrations(CuFile cuFile, ToLongFunction<CudaContext> budgetBytes) {
    this.cuFile = cuFile;
    this.budgetBytes = budgetBytes;
  }

  /// Registers `slab` once, if its device's budget allows and cuFile does not refuse.
  ///
  /// @return why it is not registered; empty if it is
  public synchronized String register(DeviceSlab slab) {
    Entry entry = entries.get(slab);
    if (entry != null) {
      return entry.refusal();
    }
    long left =
        bytesLeft.computeIfAbsent(slab.device(), _ -> budgetBytes.applyAsLong(slab.context()));
    if (slab.size() > left) {
      return slab.size()
          + " bytes of "
          + slab.device()
          + " are not registered with cuFile: its BAR1 window has room for "
          + left
          + " more";
    }
    entry = ask(slab);
    entries.put(slab, entry);
    slab.beforeFree(() -> deregister(slab));
    if (entry.isRegistered()) {
      bytesLeft.put(slab.device(), left - slab.size());
      LiveResources.add(LiveResources.Kind.REGISTRATIONS, 1);
    } else {
      LOG.info("{}", entry.refusal());
    }
    return entry.refusal();
  }

  private Entry ask(DeviceSlab slab) {
    RegistrationEvent event = new RegistrationEvent();
    event.begin();
    Entry asked = register(slab, slab.deviceSegment());
    event.ofMemory(slab.device(), slab.size(), asked.refusal());
    return asked;
  }

  private Entry register(DeviceSlab slab, MemorySegment memory) {
    try (var _ = slab.context().enter()) {
      slab.context().driver().syncMemoryOperations(memory.address());
      cuFile.registerBuffer(memory);
      return new Entry(memory, "");
    } catch (TransferException refused) {
      return new Entry(memory, "not registered with cuFile: " + refused.getMessage());
    }
  }

  private synchronized void deregister(DeviceSlab slab) {
    Entry entry = entries.get(slab);
    if (entry == null) {
      return;
    }
    if (entry.isRegistered()) {
      // Not slab.deviceSegment(), which fails while the slab is being freed.
      try (var _ = slab.context().enter()) {
        cuFile.deregisterBuffer(entry.memory());
      }
      bytesLeft.merge(slab.device(), slab.size(), Long::sum);
      LiveResources.add(LiveResources.Kind.REGISTRATIONS, -1);
    }
    entries.remove(slab);
  }

  /// Deregisters those of `slabs` that are registered: they will not be read into again, and others
  /// need their room.
  public void deregister(Collection<? extends Slab> slabs) {
    Cleanup.runAll(
        slabs.stream()
            .<Runnable>mapMulti((slab, actions) -> {
              if (slab instanceof DeviceSlab device) {
                actions.accept(() -> deregister(device));
              }
            })
            .toList());
  }

  /// Deregisters all, before the session closes the driver.
  public synchronized void clear() {
    deregister(List.copyOf(entries.keySet()));
  }
}
