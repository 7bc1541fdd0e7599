package dev.gantry.formats.tfrecord;

import dev.gantry.core.MalformedFileException;
import java.util.Map;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Applies a [CorruptionPolicy] to all faults of the files that are read together. Thread-safe.
final class SkippedFaults {
  private static final Logger LOG = LoggerFactory.getLogger(TfRecordReader.class);

  private final CorruptionPolicy policy;
  private final Map<String, Long> byKind = new TreeMap<>();
  private long count;

  /// @param before faults that were passed over earlier, and count too
  SkippedFaults(CorruptionPolicy policy, long before) {
    this.policy = policy;
    this.count = before;
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
        LOG.warn("skipped, {} of at most {}: {}", count, most, fault.getMessage());
        yield searchBytes;
      }
    };
  }

  /// Of all, those passed over earlier included.
  synchronized long count() {
    return count;
  }

  synchronized Map<String, Long> byKind() {
    return Map.copyOf(byKind);
  }
}
