package dev.gantry.djl;

/// How a training's state is spelled in a manifest.
final class StateKeys {
  static final String EPOCH = "epoch";
  static final String DATASET = "dataset";
  static final String OPTIMIZER_KIND = "optimizer.kind";
  static final String OPTIMIZER_UPDATES = "optimizer.updates";

  /// Followed by the path of a parameter.
  static final String OPTIMIZER_COUNT = "optimizer.count.";

  static final String SEED = "random.seed";

  /// Followed by the name of a generator.
  static final String RANDOM = "random.state.";

  /// Followed by the name of a state of the user's own.
  static final String USER = "user.";

  private StateKeys() {}
}
