package dev.gantry.formats.tfrecord.index;

import dev.gantry.formats.tfrecord.FeatureKind;
import java.util.Optional;
import java.util.OptionalLong;

/// What an index says of a feature over all records of a file.
///
/// @param kind of the first record that has it; empty where none has
/// @param missing how many records lack it
/// @param elements how many bytes, floats or integers each record has, where all have as many, each
///     in one place
/// @param obstacle why it cannot be read without being parsed; empty where it can
public record IndexedFeature(
    String name,
    Optional<FeatureKind> kind,
    long missing,
    OptionalLong elements,
    Optional<Obstacle> obstacle) {
  /// @param record the first that is not as those before it, or that cannot be read directly;
  ///     from 0
  /// @param reason in words, about "it": the feature
  public record Obstacle(long record, String reason) {
    /// For a message.
    public String describe() {
      return "in record " + record + " " + reason;
    }
  }

  /// Whether each record has as many elements, in one place or in the index.
  public boolean isDirect() {
    return elements.isPresent();
  }

  /// Of one record's value, where [#isDirect]. What an index has to say is checked for overflow.
  long valueBytes() {
    return elements.orElseThrow() * Kinds.elementBytes(kind.orElseThrow());
  }
}
