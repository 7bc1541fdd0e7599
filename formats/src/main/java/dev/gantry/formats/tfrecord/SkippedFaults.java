// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Applies a [CorruptionPolicy] to all faults of the files that are read together. Thread-safe.
public final class SkippedFaults {
  private static final Logger LOG = LoggerFactory.getLogger(TfRecordReader.class);

  private final CorruptionPolicy policy;
  private final Map<String, Long> byKind;
  private long count;

  static SkippedFaults of(TfRecordOptions options) {
    return new SkippedFaults(MisuseException.requireGiven("options", options).corruption());
  }

  /// Begins with no faults counted.
  public SkippedFaults(CorruptionPolicy policy) {
    this(policy, 0, new ConcurrentHashMap<>());
  }

  /// @param before how many faults were skipped earlier; these count, too
  /// @param byKind counts the faults that are skipped from now on, by their kinds; several
  ///     instances may share it
  public SkippedFaults(CorruptionPolicy policy, long before, ConcurrentMap<String, Long> byKind) {
    this.policy = MisuseException.requireGiven("policy", policy);
    this.count = before;
    this.byKind = byKind;
  }

  /// Counts and logs a fault if the policy allows one more; otherwise throws it.
  synchronized void pass(MalformedFileException fault) {
    if (!(policy instanceof CorruptionPolicy.Skip(long most)) || count >= most) {
      throw fault;
    }
    count++;
    byKind.merge(fault.kind(), 1L, Long::sum);
    LOG.warn("skipped, {} of at most {}: {}", count, most, fault.getMessage());
  }

  /// The number of all skipped faults, those skipped earlier included.
  public synchronized long count() {
    return count;
  }

  Map<String, Long> byKind() {
    return Map.copyOf(byKind);
  }
}
