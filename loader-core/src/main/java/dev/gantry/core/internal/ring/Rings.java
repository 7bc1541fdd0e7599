// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.transport.OnDemandTransfer;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.internal.transport.Transports;
import java.util.ArrayList;
import java.util.List;

/// A session's open rings. Thread-safe.
public final class Rings implements AutoCloseable {
  private final Transports transports;
  private final List<PrefetchRing<?>> open = new ArrayList<>();
  private boolean closed;

  /// @param transports which outlive the rings
  public Rings(Transports transports) {
    this.transports = transports;
  }

  /// See [dev.gantry.core.internal.session.GantrySession#ring].
  public <T> PrefetchRing<T> open(RingOptions options, BatchPlanSource<T> source) {
    List<Runnable> undo = new ArrayList<>(List.of(source::close));
    try {
      return transports.using(() -> {
        PrefetchRing<T> ring = build(options, source, undo);
        undo.clear();
        undo.add(ring::close);
        // Before anything is read: the session closes the rings it knows before what they use.
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
    TransferOptions reads = options.transfer();
    OnDemandTransfer transfer =
        transports.onDemand(
            options.device(),
            reads.withLimits(reads.limits().withRequestBytes(options.requestBytes())),
            source::opened);
    undo.add(transfer::close);
    HostMemory.require(hostBytes(options, transfer));
    List<Slot> slots = new ArrayList<>();
    KernelTurns kernels = new KernelTurns(options.slots());
    for (int i = 0; i < options.slots(); i++) {
      Slot slot = slot(options, kernels);
      slots.add(slot);
      undo.add(slot::close);
      undo.add(slot::release);
      slot.allocate();
    }
    return new PrefetchRing<>(
        options, source, transfer, slots, transports.counters(), this::forget);
  }

  private static long hostBytes(RingOptions options, OnDemandTransfer transfer) {
    long each =
        switch (options.device()) {
          case Device.Host _ -> options.slotBytes();
          case Device.Cuda _ -> options.hostBytes();
        };
    // More than a long can count is more than any machine has.
    long most = (Long.MAX_VALUE - transfer.stagingBytes()) / options.slots();
    return each > most ? Long.MAX_VALUE : options.slots() * each + transfer.stagingBytes();
  }

  private static Slot slot(RingOptions options, KernelTurns kernels) {
    return switch (options.device()) {
      case Device.Host _ -> new HostSlot(options.slotBytes());
      case Device.Cuda cuda ->
          new DeviceSlot(CudaContext.of(cuda), options.slotBytes(), options.hostBytes(), kernels);
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

  /// Closes the open rings, and refuses to open others.
  @Override
  public void close() {
    List<PrefetchRing<?>> closing;
    synchronized (this) {
      closed = true;
      closing = List.copyOf(open);
    }
    // Not under the lock, which each ring takes when it closes.
    Cleanup.runAll(closing.stream().<Runnable>map(ring -> ring::close).toList());
  }
}
