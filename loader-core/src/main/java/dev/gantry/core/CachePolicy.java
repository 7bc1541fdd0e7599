// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Whether reads go through the page cache.
public enum CachePolicy {
  /// Decides for each request: reads bytes that are in the page cache through the page cache, and
  /// all other bytes by direct I/O. Bytes for which the kernel does not say whether they are in
  /// the page cache are read by direct I/O. A file of which this process has read seven eighths by
  /// direct I/O goes through the page cache from its next opening on, as long as such files
  /// together take at most half of the available memory.
  BY_RESIDENCY,
  /// Always reads through the page cache.
  BUFFERED,
  /// Always reads past the page cache (`O_DIRECT`) if the file system supports that.
  DIRECT
}
