package dev.gantry.core.memory;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CuFile;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/// Slabs registered with cuFile, so that a disk writes into them without a bounce buffer.
///
/// A registered slab takes as much of the GPU's BAR1 window as it is large, so there is a budget;
/// what does not fit is not registered, and cuFile bounces it. Each slab is deregistered before it
/// is freed. Thread-safe.
public final class Registrations {
  private final CuFile cuFile;
  private final long budgetBytes;
  private final Map<DeviceSlab, MemorySegment> registered = new HashMap<>();
  private long registeredBytes;

  /// @param budgetBytes the most to register at once
  public Registrations(CuFile cuFile, long budgetBytes) {
    this.cuFile = cuFile;
    this.budgetBytes = budgetBytes;
  }

  /// Registers `slab`, once, if the budget allows.
  ///
  /// @return whether it is registered now
  /// @throws TransferException if cuFile refuses
  public synchronized boolean register(DeviceSlab slab) {
    if (registered.containsKey(slab)) {
      return true;
    }
    if (slab.size() > budgetBytes - registeredBytes) {
      return false;
    }
    MemorySegment memory = slab.deviceSegment();
    try (var _ = slab.context().enter()) {
      slab.context().driver().syncMemoryOperations(memory.address());
      cuFile.registerBuffer(memory);
    }
    registered.put(slab, memory);
    registeredBytes += slab.size();
    LiveResources.add(LiveResources.Kind.REGISTRATIONS, 1);
    slab.beforeFree(() -> deregister(slab));
    return true;
  }

  private synchronized void deregister(DeviceSlab slab) {
    // Not asked of the slab, which may be about to be freed, and closed to questions.
    MemorySegment memory = registered.remove(slab);
    if (memory == null) {
      return;
    }
    registeredBytes -= slab.size();
    LiveResources.add(LiveResources.Kind.REGISTRATIONS, -1);
    try (var _ = slab.context().enter()) {
      cuFile.deregisterBuffer(memory);
    }
  }

  /// Deregisters everything: for the end of the session, before the driver closes. Memory that
  /// lives on needs no registration any more.
  public synchronized void clear() {
    Slab.runAll(
        registered.keySet().stream().<Runnable>map(slab -> () -> deregister(slab)).toList());
  }
}
