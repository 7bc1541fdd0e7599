package dev.gantry.formats.internal.examples;

/// The features of one record, by their numbers among all that are wanted. What is given is valid
/// until the next is asked for.
interface ExampleValues {
  /// How many steps a feature list has; -1 where there is none of the name.
  long steps(int feature);

  /// A feature that is not of several steps.
  FeatureValue value(int feature);

  /// A step of a feature list; to be asked for in order, from the first.
  FeatureValue step(int feature, long step);
}
