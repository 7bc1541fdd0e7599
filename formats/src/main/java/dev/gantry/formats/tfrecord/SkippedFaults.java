// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MalformedFileException;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Applies a [CorruptionPolicy] to all faults of the files that are read together. Thread-safe.
public final class SkippedFaults {
  private static final Logger LOG = LoggerFactory.getLogger(TfRecordReader.class);

  private final CorruptionPolicy policy;
  private final Consumer<String> listener;
  private final Map<String, Long> byKind = new TreeMap<>();
  private long count;

  /// Faults of files of which none was read before; nobody is told of those that are passed over.
  public SkippedFaults(CorruptionPolicy policy) {
    this(policy, 0, _ -> {});
  }

  /// @param before faults that were passed over earlier, and count too
  /// @param listener gets the kind of each that is passed over
  public SkippedFaults(CorruptionPolicy policy, long before, Consumer<String> listener) {
    this.policy = policy;
    this.count = before;
    this.listener = listener;
  }

  /// Passes over a fault, or throws it.
  ///
  /// @return how far to look for the next record, where it does not follow
  synchronized long pass(MalformedFileException fault) {
    return switch (policy) {
      case CorruptionPolicy.Fail() -> throw fault;
      case CorruptionPolicy.Skip(long most, long searchBytes) -> {
        if (count >= most) {
          throw fault;
        }
        count++;
        byKind.merge(fault.kind(), 1L, Long::sum);
        listener.accept(fault.kind());
        LOG.warn("skipped, {} of at most {}: {}", count, most, fault.getMessage());
        yield searchBytes;
      }
    };
  }

  /// The count of all faults, those passed over earlier included.
  public synchronized long count() {
    return count;
  }

  synchronized Map<String, Long> byKind() {
    return Map.copyOf(byKind);
  }
}
