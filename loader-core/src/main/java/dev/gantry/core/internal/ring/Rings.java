// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.convert.Converters;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.transport.OnDemandTransfer;
import dev.gantry.core.internal.transport.ReaderRule;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.ArrayList;
import java.util.List;

/// A session's open rings. Thread-safe.
public final class Rings implements AutoCloseable {
  private static final String CHANGE =
      "keep fewer batches (optPrefetch) or smaller ones (setSampling)";

  private final TransferEngine engine;
  private final Converters converters;
  private final List<PrefetchRing<?>> open = new ArrayList<>();
  private boolean closed;

  /// @param engine the session's engine, which outlives the rings
  /// @param converters the session's converters, which outlive the rings
  public Rings(TransferEngine engine, Converters converters) {
    this.engine = engine;
    this.converters = converters;
  }

  /// Opens a ring; see [dev.gantry.core.internal.session.GantrySession#ring].
  public <T> PrefetchRing<T> open(RingOptions options, BatchPlanSource<T> source) {
    List<Runnable> undo = new ArrayList<>(List.of(source::close));
    try {
      return engine.using(() -> {
        PrefetchRing<T> ring = build(options, source, undo);
        Runnable close = ring::close;
        undo.clear();
        undo.add(close);
        // The ring is registered before it reads anything, because the session closes registered
        // rings before it closes the readers and pools that rings use.
        register(ring);
        ring.start();
        return ring;
      });
    } catch (RuntimeException | Error failure) {
      Cleanup.runAll(undo, failure);
      throw failure;
    }
  }

  private <T> PrefetchRing<T> build(
      RingOptions options, BatchPlanSource<T> source, List<Runnable> undo) {
    OnDemandTransfer transfer = engine.onDemand(options.device(), reads(options), source::opened);
    undo.add(transfer::close);
    Admission.require(use(options), options.device(), CHANGE);
    List<Slot> slots = new ArrayList<>(options.slots());
    undo.add(() -> Cleanup.forEach(slots, Slot::close));
    undo.add(() -> Cleanup.forEach(slots, Slot::release));
    KernelPacer pacer = new KernelPacer(options.slots());
    for (int i = 0; i < options.slots(); i++) {
      Slot slot = slot(options, pacer);
      slots.add(slot);
      slot.allocateIfNeeded();
    }
    return new PrefetchRing<>(options, source, transfer, slots, engine.counters(), this::forget);
  }

  private MemoryUse use(RingOptions options) {
    MemoryUse slot =
        switch (options.device()) {
          case Device.Host _ -> MemoryUse.on(options.device(), options.slotBytes());
          case Device.Cuda _ -> new MemoryUse(options.slotBytes(), options.hostBytes(), 0);
        };
    MemoryUse all = ReaderRule.onDemandUse(options.device(), reads(options));
    for (int i = 0; i < options.slots(); i++) {
      all = all.plus(slot);
    }
    return all;
  }

  private static TransferOptions reads(RingOptions options) {
    TransferOptions reads =
        options.hostBytes() > options.slotBytes() / 2
            ? ReaderRule.ofWriters(options.device(), options.transfer())
            : options.transfer();
    return reads.withLimits(reads.limits().withRequestBytes(options.requestBytes()));
  }

  private Slot slot(RingOptions options, KernelPacer pacer) {
    return switch (options.device()) {
      case Device.Host _ -> new HostSlot(options.slotBytes());
      case Device.Cuda cuda ->
          new DeviceSlot(
              CudaContext.of(cuda), options.slotBytes(), options.hostBytes(), pacer, converters);
    };
  }

  private synchronized void register(PrefetchRing<?> ring) {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
    open.add(ring);
  }

  private synchronized void forget(PrefetchRing<?> ring) {
    open.remove(ring);
  }

  /// @throws MisuseException if a source or host writer of one of the rings calls it
  public synchronized void requireMayClose() {
    open.forEach(ring -> ring.requireOutside("closed"));
  }

  /// Closes the open rings, and opens no others from now on.
  @Override
  public void close() {
    List<PrefetchRing<?>> closing;
    synchronized (this) {
      closed = true;
      closing = List.copyOf(open);
    }
    // The lock is not held here, since each ring takes this lock when it closes.
    Cleanup.forEach(closing, PrefetchRing::close);
  }
}
