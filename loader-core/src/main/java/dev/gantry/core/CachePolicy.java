package dev.gantry.core;

/// Whether reads go through the page cache.
public enum CachePolicy {
  /// By looking, request by request: what lies in the page cache is taken from there, the rest
  /// comes by direct I/O, also where the kernel does not say.
  BY_RESIDENCY,
  /// Always through the page cache.
  BUFFERED,
  /// Always past the page cache, where the file system can.
  DIRECT
}
