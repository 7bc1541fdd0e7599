package dev.gantry.formats.tfrecord.index;

import java.util.List;
import java.util.Optional;

/// What an index says of a file.
///
/// @param records in the file
/// @param recordBytes bytes of these, without their framing
/// @param features in the order in which they were chosen, or in which records have them first
public record IndexSummary(long records, long recordBytes, List<IndexedFeature> features) {
  public IndexSummary {
    features = List.copyOf(features);
  }

  public Optional<IndexedFeature> feature(String name) {
    return features.stream().filter(feature -> feature.name().equals(name)).findFirst();
  }
}
