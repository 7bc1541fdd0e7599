package dev.gantry.formats.tfrecord;

/// What a feature is a list of.
public enum FeatureKind {
  /// Strings of bytes; each holds elements of any dtype, as they lie in memory, little endian.
  BYTES,
  /// Of dtype F32.
  FLOAT,
  /// Of dtype I64.
  INT64
}
