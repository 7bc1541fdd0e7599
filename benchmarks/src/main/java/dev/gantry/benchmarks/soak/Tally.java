// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.LongAdder;

/// Counts what a soak did. Thread-safe.
final class Tally {
  private final Map<String, LongAdder> operations = new ConcurrentSkipListMap<>();
  private final Map<String, LongAdder> faults = new ConcurrentSkipListMap<>();
  private final Map<String, LongAdder> failures = new ConcurrentSkipListMap<>();
  private final LongAdder verifiedBytes = new LongAdder();

  void operation(String kind) {
    operations.computeIfAbsent(kind, _ -> new LongAdder()).increment();
  }

  /// Counts an operation with a fault that failed as expected, or that succeeded in spite of the
  /// fault.
  void faults(String kind, long count, boolean good) {
    faults.computeIfAbsent(kind, _ -> new LongAdder()).add(count);
    failures.computeIfAbsent(kind, _ -> new LongAdder()).add(good ? 0 : 1);
  }

  void verified(long bytes) {
    verifiedBytes.add(bytes);
  }

  long verifiedBytes() {
    return verifiedBytes.sum();
  }

  SortedMap<String, Long> operations() {
    return sums(operations);
  }

  SortedMap<String, Long> faults() {
    return sums(faults);
  }

  /// Returns how many operations each kind of fault made fail.
  SortedMap<String, Long> failures() {
    return sums(failures);
  }

  private static SortedMap<String, Long> sums(Map<String, LongAdder> counts) {
    SortedMap<String, Long> sums = new TreeMap<>();
    counts.forEach((kind, count) -> sums.put(kind, count.sum()));
    return sums;
  }

  static long total(SortedMap<String, Long> counts) {
    return counts.values().stream().mapToLong(Long::longValue).sum();
  }
}
