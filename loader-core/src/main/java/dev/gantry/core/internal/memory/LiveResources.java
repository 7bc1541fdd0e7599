// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Metrics;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.LongAdder;

/// Counts the resources that Gantry holds in this process. Every test ends by checking that the
/// counts equal [Snapshot#NOTHING].
///
/// Thread-safe. The counts of a snapshot that is taken during allocations may stem from different
/// moments.
public final class LiveResources {
  /// The kinds of resources that are counted.
  public enum Kind {
    OPEN_FILES,
    SLABS,
    HOST_BYTES,
    MAPPED_BYTES,
    PINNED_BYTES,
    DEVICE_BYTES,
    REGISTRATIONS
  }

  private static final Map<Kind, Counter> COUNTERS = new EnumMap<>(Kind.class);

  static {
    for (Kind kind : Kind.values()) {
      COUNTERS.put(kind, new Counter());
    }
  }

  private static final class Counter {
    private final LongAdder all = new LongAdder();

    /// The memory that slabs use, in bytes, without idle memory.
    private long used;

    private long mostUsed;

    synchronized void use(long amount) {
      used += amount;
      mostUsed = Math.max(mostUsed, used);
    }

    synchronized long mostUsed() {
      return mostUsed;
    }

    synchronized void forgetMostUsed() {
      mostUsed = used;
    }
  }

  private LiveResources() {}

  /// Adds `amount`, which may be negative, to the count of `kind`. Only the owners of resources call this.
  public static void add(Kind kind, long amount) {
    counter(kind).all.add(amount);
  }

  /// Counts `bytes` that a slab begins to use, or stops using if negative.
  static void use(Kind kind, long bytes) {
    add(kind, bytes);
    counter(kind).use(bytes);
  }

  private static Counter counter(Kind kind) {
    return Objects.requireNonNull(COUNTERS.get(kind));
  }

  /// The most memory of each kind that slabs used at once since the process began; the kinds may have reached their
  /// maxima at different moments.
  public static Metrics.MemoryUse mostUsed() {
    return new Metrics.MemoryUse(
        counter(Kind.DEVICE_BYTES).mostUsed(),
        counter(Kind.PINNED_BYTES).mostUsed(),
        counter(Kind.HOST_BYTES).mostUsed());
  }

  /// Resets [#mostUsed] to the memory that is used now, for tests.
  public static void forgetMostUsed() {
    COUNTERS.values().forEach(Counter::forgetMostUsed);
  }

  private static long count(Kind kind) {
    return counter(kind).all.sum();
  }

  public static Snapshot snapshot() {
    return new Snapshot(
        count(Kind.OPEN_FILES),
        count(Kind.SLABS),
        count(Kind.HOST_BYTES),
        count(Kind.MAPPED_BYTES),
        count(Kind.PINNED_BYTES),
        count(Kind.DEVICE_BYTES),
        count(Kind.REGISTRATIONS));
  }

  /// @param openFiles files, each counted once even if it has two descriptors
  /// @param registrations slabs registered with cuFile
  public record Snapshot(
      long openFiles,
      long slabs,
      long hostBytes,
      long mappedBytes,
      long pinnedBytes,
      long deviceBytes,
      long registrations) {
    public static final Snapshot NOTHING = new Snapshot(0, 0, 0, 0, 0, 0, 0);

    /// The same numbers in the type of the public API.
    public Metrics.Holdings holdings() {
      return new Metrics.Holdings(
          openFiles, slabs, hostBytes, mappedBytes, pinnedBytes, deviceBytes, registrations);
    }
  }
}
