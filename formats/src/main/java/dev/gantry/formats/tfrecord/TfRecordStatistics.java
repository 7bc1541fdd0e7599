package dev.gantry.formats.tfrecord;

import java.util.Map;

/// What has been read so far.
///
/// @param records that were good
/// @param bytes of these, without their framing
/// @param skipped how many faults were passed over, by kind
public record TfRecordStatistics(long records, long bytes, Map<String, Long> skipped) {
  public TfRecordStatistics {
    skipped = Map.copyOf(skipped);
  }
}
