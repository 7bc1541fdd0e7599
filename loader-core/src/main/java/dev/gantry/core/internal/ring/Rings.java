package dev.gantry.core.internal.ring;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.StandingTransfer;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.internal.transport.Transports;
import java.util.ArrayList;
import java.util.List;

/// A session's open rings. Thread-safe.
public final class Rings implements AutoCloseable {
  private final Transports paths;
  private final List<PrefetchRing<?>> open = new ArrayList<>();
  private boolean closed;

  /// @param paths which outlive the rings
  public Rings(Transports paths) {
    this.paths = paths;
  }

  /// See [dev.gantry.core.internal.session.GantrySession#ring].
  public <T> PrefetchRing<T> open(RingOptions options, BatchPlanSource<T> source) {
    List<Runnable> undo = new ArrayList<>(List.of(source::close));
    try {
      return paths.using(() -> {
        PrefetchRing<T> ring = build(options, source, undo);
        undo.clear();
        undo.add(ring::close);
        // Before anything is read: what a reader uses is not taken away while the ring is known.
        register(ring);
        ring.start();
        return ring;
      });
    } catch (RuntimeException | Error failure) {
      try {
        Cleanup.runAll(undo);
      } catch (RuntimeException | Error besides) {
        failure.addSuppressed(besides);
      }
      throw failure;
    }
  }

  private <T> PrefetchRing<T> build(
      RingOptions options, BatchPlanSource<T> source, List<Runnable> undo) {
    TransferOptions reads = options.transfer();
    PlanLimits limits = reads.limits();
    // No read is larger than its slot, so nothing larger need be staged in.
    long requestBytes = Math.min(limits.requestBytes(), options.slotBytes());
    StandingTransfer transfer =
        paths.standingTransfer(
            options.device(),
            reads.withLimits(limits.withRequestBytes(requestBytes)),
            source::opened);
    undo.add(transfer::close);
    HostMemory.require(hostBytes(options, transfer));
    List<Slot> slots = new ArrayList<>();
    for (int i = 0; i < options.slots(); i++) {
      Slot slot = slot(options);
      slots.add(slot);
      undo.add(slot::dismantle);
      undo.add(slot::release);
      slot.prepare();
    }
    BatchPlanCheck check =
        new BatchPlanCheck(options.slotBytes(), options.hostBytes(), requestBytes);
    return new PrefetchRing<>(options, source, check, transfer, slots, this::forget);
  }

  private static long hostBytes(RingOptions options, StandingTransfer transfer) {
    long each =
        switch (options.device()) {
          case Device.Host _ -> options.slotBytes();
          case Device.Cuda _ -> options.hostBytes();
        };
    // What cannot be counted is not to be had, and of no more interest than that.
    long most = (Long.MAX_VALUE - transfer.stagingBytes()) / options.slots();
    return each > most ? Long.MAX_VALUE : options.slots() * each + transfer.stagingBytes();
  }

  private static Slot slot(RingOptions options) {
    return switch (options.device()) {
      case Device.Host _ -> new HostSlot(options.slotBytes());
      case Device.Cuda cuda ->
          new DeviceSlot(CudaContext.of(cuda), options.slotBytes(), options.hostBytes());
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

  /// @throws MisuseException if a source or maker of one of the rings calls it
  public synchronized void checkMayClose() {
    open.forEach(ring -> ring.checkOutside("closed"));
  }

  /// Closes the rings that are still open, and opens none any more.
  @Override
  public void close() {
    List<PrefetchRing<?>> closing;
    synchronized (this) {
      closed = true;
      closing = List.copyOf(open);
    }
    // Not under the lock, which each takes when it is closed.
    Cleanup.runAll(closing.stream().<Runnable>map(ring -> ring::close).toList());
  }
}
