package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/// One contiguous allocation, shared by counting: it starts with one share, [#retain] adds one,
/// [#release] gives one back, and the memory goes with the last. Whoever wraps a part of a slab
/// holds a share for as long as the wrapping lives.
///
/// Thread-safe.
public abstract sealed class Slab permits CpuSlab, DeviceSlab {
  /// The alignment of a slab's address in bytes: a page, so that `O_DIRECT` takes it.
  public static final int ALIGNMENT_BYTES = 4096;

  /// Also where the slab is closed already, for `free`.
  final long address;

  private final long size;
  private final LiveResources.Kind kind;
  private final AtomicLong shares = new AtomicLong(1);
  private final Deque<Runnable> beforeFree = new ArrayDeque<>();

  Slab(long address, long size, LiveResources.Kind kind) {
    this.address = address;
    this.size = size;
    this.kind = kind;
    LiveResources.add(LiveResources.Kind.SLABS, 1);
    LiveResources.add(kind, size);
  }

  /// Whose memory this is.
  public abstract Device device();

  /// Gives the memory back to whom it came from; called once.
  abstract void free();

  /// The first byte's address; a multiple of [#ALIGNMENT_BYTES].
  ///
  /// @throws MisuseException if the slab is closed
  public final long address() {
    if (shares.get() <= 0) {
      throw closed();
    }
    return address;
  }

  /// In bytes.
  public final long size() {
    return size;
  }

  /// Takes one more share.
  ///
  /// @throws MisuseException if the last share is gone already
  public final Slab retain() {
    long count = shares.get();
    while (count > 0) {
      if (shares.compareAndSet(count, count + 1)) {
        return this;
      }
      count = shares.get();
    }
    throw closed();
  }

  /// Gives one share back; with the last one, what [#beforeFree] asked for is done and the memory
  /// is freed. Where an action fails, the others are done all the same, and the memory stays: what
  /// may still be registered must not be freed.
  ///
  /// @throws MisuseException if there is no share left to give back
  public final void release() {
    long left = shares.decrementAndGet();
    if (left < 0) {
      shares.incrementAndGet();
      throw closed();
    }
    if (left == 0) {
      runBeforeFree();
      free();
      LiveResources.add(kind, -size);
      LiveResources.add(LiveResources.Kind.SLABS, -1);
    }
  }

  /// Gives back one share of each: of the rest too where one fails.
  public static void releaseAll(Collection<? extends Slab> slabs) {
    Cleanup.runAll(slabs.stream().<Runnable>map(slab -> slab::release).toList());
  }

  /// As [#releaseAll(Collection)], for cleaning up after `failure`, which keeps what fails besides.
  public static void releaseAll(Collection<? extends Slab> slabs, Throwable failure) {
    Cleanup.runAll(slabs.stream().<Runnable>map(slab -> slab::release).toList(), failure);
  }

  /// Whether others hold shares besides the caller, who holds one.
  public final boolean isShared() {
    return shares.get() > 1;
  }

  /// Whether the memory is gone.
  public final boolean isClosed() {
    return shares.get() <= 0;
  }

  /// Copies `bytes` from a slab of the same device. On a CUDA device the copy is queued on the
  /// default stream.
  public final void copyFrom(long offset, Slab source, long sourceOffset, long bytes) {
    Objects.checkFromIndexSize(offset, bytes, size);
    Objects.checkFromIndexSize(sourceOffset, bytes, source.size);
    if (!device().equals(source.device())) {
      throw new MisuseException("no copy from " + source.device() + " to " + device());
    }
    copyWithin(address() + offset, source.address() + sourceOffset, bytes);
  }

  /// Copies on this slab's device, where all addresses are known to be good.
  abstract void copyWithin(long target, long source, long bytes);

  /// Asks for `action` just before the memory is freed, the last asked first: a slab that is
  /// registered with cuFile must be deregistered then, since freeing registered device memory can
  /// deadlock nvidia-fs.
  public final void beforeFree(Runnable action) {
    synchronized (beforeFree) {
      address();
      beforeFree.push(action);
    }
  }

  private void runBeforeFree() {
    List<Runnable> actions;
    synchronized (beforeFree) {
      actions = List.copyOf(beforeFree);
      beforeFree.clear();
    }
    // Not under the lock: an action takes locks of its own, whose holders may want this one.
    Cleanup.runAll(actions);
  }

  private MisuseException closed() {
    return new MisuseException("this slab of " + size + " bytes on " + device() + " is closed");
  }

  static void checkSize(long size) {
    if (size <= 0) {
      throw new MisuseException("a slab needs a positive size, not " + size);
    }
  }
}
