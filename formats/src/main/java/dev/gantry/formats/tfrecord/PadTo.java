package dev.gantry.formats.tfrecord;

/// How long values of different lengths become in a batch.
public enum PadTo {
  /// As long as the longest of the batch: the shape differs from batch to batch.
  LONGEST,
  /// As long as the longest that may be: every batch has the same shape.
  MOST
}
