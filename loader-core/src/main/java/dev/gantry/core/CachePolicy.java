// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Whether reads go through the page cache.
public enum CachePolicy {
  /// Decided for each request: bytes in the page cache are read from there, all others by direct I/O,
  /// also if the kernel does not say where they are.
  BY_RESIDENCY,
  /// Always through the page cache.
  BUFFERED,
  /// Always past the page cache, if the file system can.
  DIRECT
}
