// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// One contiguous allocation with counted shares: it starts with one share, [#retain] adds one,
/// [#release] removes one, and the last release frees the memory. An array over a part of a slab
/// holds a share as long as it lives.
///
/// Thread-safe.
public abstract sealed class Slab permits CpuSlab, DeviceSlab {
  /// The alignment of a slab's address in bytes: a page, as `O_DIRECT` needs.
  public static final int ALIGNMENT_BYTES = 4096;

  /// The address, without the check of [#address()]: [#free] needs it after the slab is closed.
  final long address;

  private final long size;
  private final LiveResources.Kind kind;
  private final long taken;
  private final boolean kept;
  private final AtomicLong shares = new AtomicLong(1);
  private final Deque<Runnable> beforeFree = new ArrayDeque<>();

  /// @param taken the bytes that [LiveResources] counts for this slab: `size` or more
  /// @param kept whether the owner gives the memory back when others need memory; such memory does
  ///     not count as used
  Slab(long address, long size, LiveResources.Kind kind, long taken, boolean kept) {
    this.address = address;
    this.size = size;
    this.kind = kind;
    this.taken = taken;
    this.kept = kept;
    LiveResources.add(LiveResources.Kind.SLABS, 1);
    count(taken);
  }

  private void count(long bytes) {
    if (kept) {
      LiveResources.add(kind, bytes);
    } else {
      LiveResources.use(kind, bytes);
    }
  }

  /// The device that has the memory.
  public abstract Device device();

  /// Frees the memory; called once.
  abstract void free();

  /// Frees the memory without waiting for other work of the device; called once, instead of
  /// [#free]. If freeing has to wait, another thread frees the memory soon.
  void freeSoon() {
    free();
  }

  /// The first byte's address; a multiple of [#ALIGNMENT_BYTES].
  ///
  /// @throws MisuseException if the slab is closed
  public final long address() {
    if (shares.get() <= 0) {
      throw closed();
    }
    return address;
  }

  /// The slab's size in bytes.
  public final long size() {
    return size;
  }

  /// Adds a share.
  ///
  /// @throws MisuseException if the slab is closed
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

  /// Releases a share. The last release runs the actions of [#beforeFree] and frees the memory. If an
  /// action fails, the others still run, and the memory stays allocated: it may still be registered.
  ///
  /// @throws MisuseException if there is no share left
  public final void release() {
    release(false);
  }

  /// Does the same as [#release], but frees the memory with [#freeSoon].
  final void releaseSoon() {
    release(true);
  }

  private void release(boolean soon) {
    long left = shares.decrementAndGet();
    if (left < 0) {
      shares.incrementAndGet();
      throw closed();
    }
    if (left == 0) {
      runBeforeFree();
      // The memory is subtracted from the counts before it is freed: the next slab may get it
      // before this call returns, and it would count twice.
      count(-taken);
      boolean freed = false;
      try {
        if (soon) {
          freeSoon();
        } else {
          free();
        }
        freed = true;
      } finally {
        if (!freed) {
          count(taken);
        }
      }
      LiveResources.add(LiveResources.Kind.SLABS, -1);
    }
  }

  /// Releases one share of each, also if one release fails.
  public static void releaseAll(Collection<? extends Slab> slabs) {
    Cleanup.forEach(slabs, Slab::release);
  }

  /// Does the same as [#releaseAll(Collection)] after `failure`, and adds other failures to it as
  /// suppressed. This does not wait for other work of a device, so that cancelling a load does not
  /// wait for other loads.
  public static void releaseAll(Collection<? extends Slab> slabs, Throwable failure) {
    Cleanup.after(failure, all -> Cleanup.forEach(all, Slab::releaseSoon), slabs);
  }

  /// Whether there are shares besides the caller's.
  public final boolean isShared() {
    return shares.get() > 1;
  }

  /// Whether the memory must not be written to, because other processes read it.
  public boolean isReadOnly() {
    return false;
  }

  /// Whether the memory is freed.
  public final boolean isClosed() {
    return shares.get() <= 0;
  }

  /// Has `action` run just before the memory is freed. Several actions run in the reverse order of
  /// these calls. A slab that is registered with cuFile is deregistered by such an action, since
  /// freeing registered device memory can deadlock nvidia-fs.
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
    // The lock is not held here, because actions take other locks, whose holders may wait for this
    // lock.
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
