// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Whether reads go through the page cache.
public enum CachePolicy {
  /// Chooses for each request: reads bytes that are in the page cache from there, and all others by direct I/O, also
  /// where the kernel does not say which they are.
  BY_RESIDENCY,
  /// Reads through the page cache always.
  BUFFERED,
  /// Reads past the page cache always (`O_DIRECT`), where the file system supports it.
  DIRECT
}
