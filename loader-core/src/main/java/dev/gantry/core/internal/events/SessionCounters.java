// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Metrics;
import dev.gantry.core.Metrics.Holdings;
import dev.gantry.core.Transport;
import dev.gantry.core.spi.Residency;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.LongAdder;

/// Counts a session's loads, reads, saves and batches. Thread-safe; threads that count do not wait
/// for each other.
public final class SessionCounters {
  private final LongAdder loads = new LongAdder();
  private final LongAdder failedLoads = new LongAdder();
  private final LongAdder reads = new LongAdder();
  private final Map<Transport, LongAdder> readBytes = byEach(Transport.class);
  private final Map<Residency, LongAdder> residencyBytes = byEach(Residency.class);
  private final LongAdder fallbacks = new LongAdder();
  private final LongAdder saves = new LongAdder();
  private final LongAdder failedSaves = new LongAdder();
  private final LongAdder files = new LongAdder();
  private final Map<Transport, LongAdder> savedBytes = byEach(Transport.class);
  private final LongAdder batches = new LongAdder();
  private final LongAdder waits = new LongAdder();
  private final LongAdder waitedNanos = new LongAdder();
  private final DiskSpeeds disks = new DiskSpeeds();

  private static <K extends Enum<K>> Map<K, LongAdder> byEach(Class<K> kind) {
    Map<K, LongAdder> adders = new EnumMap<>(kind);
    for (K one : kind.getEnumConstants()) {
      adders.put(one, new LongAdder());
    }
    return adders;
  }

  public void addLoad(boolean completed) {
    (completed ? loads : failedLoads).increment();
  }

  /// @param residency whether the bytes were in the page cache before they were read
  public void addRead(Transport transport, long bytes, Residency residency) {
    reads.increment();
    Objects.requireNonNull(readBytes.get(transport)).add(bytes);
    Objects.requireNonNull(residencyBytes.get(residency)).add(bytes);
  }

  /// Returns the measurements of the disks.
  public DiskSpeeds disks() {
    return disks;
  }

  public void addFallback() {
    fallbacks.increment();
  }

  public void addSave(boolean completed) {
    (completed ? saves : failedSaves).increment();
  }

  /// Counts files that were given their final names.
  public void addFiles(long count) {
    files.add(count);
  }

  public void addWritten(Transport transport, long bytes) {
    Objects.requireNonNull(savedBytes.get(transport)).add(bytes);
  }

  public void addBatch() {
    batches.increment();
  }

  public void addWait(long nanos) {
    waits.increment();
    waitedNanos.add(nanos);
  }

  /// Returns the counts so far.
  public Metrics snapshot(Holdings holdings, Metrics.MemoryUse mostUsed) {
    return new Metrics(
        new Metrics.Loads(loads.sum(), failedLoads.sum()),
        new Metrics.Reads(
            reads.sum(),
            sums(readBytes),
            sum(Residency.HOT),
            sum(Residency.COLD),
            sum(Residency.UNKNOWN),
            fallbacks.sum()),
        new Metrics.Saves(saves.sum(), failedSaves.sum(), files.sum(), sums(savedBytes)),
        new Metrics.Batches(batches.sum(), waits.sum(), Duration.ofNanos(waitedNanos.sum())),
        holdings,
        mostUsed);
  }

  private long sum(Residency residency) {
    return Objects.requireNonNull(residencyBytes.get(residency)).sum();
  }

  private static Map<Transport, Long> sums(Map<Transport, LongAdder> adders) {
    Map<Transport, Long> sums = new EnumMap<>(Transport.class);
    adders.forEach((transport, adder) -> {
      long sum = adder.sum();
      if (sum > 0) {
        sums.put(transport, sum);
      }
    });
    return sums;
  }
}
