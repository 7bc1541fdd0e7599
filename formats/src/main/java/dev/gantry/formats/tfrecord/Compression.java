package dev.gantry.formats.tfrecord;

/// How all of a TFRecord file is compressed.
public enum Compression {
  NONE,
  /// One gzip member or several, one after the other (RFC 1952).
  GZIP,
  /// One zlib stream (RFC 1950).
  ZLIB
}
