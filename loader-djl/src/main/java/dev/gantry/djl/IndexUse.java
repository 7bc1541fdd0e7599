package dev.gantry.djl;

/// Whether TFRecord files are read by their indexes or as streams.
public enum IndexUse {
  /// By their indexes, where each file has one of it as it is now that serves all features; else as
  /// streams, for a reason that is logged.
  WHERE_THERE,
  /// By their indexes, which are built where they are missing or old: that reads the files once.
  BUILD,
  /// By their indexes, or not at all.
  REQUIRE,
  /// As streams.
  NONE
}
