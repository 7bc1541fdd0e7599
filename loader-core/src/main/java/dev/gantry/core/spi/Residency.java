// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

/// Whether bytes of a file are in the page cache.
public enum Residency {
  /// The bytes are best read through the page cache.
  HOT,
  /// The bytes are best read past the page cache.
  COLD,
  /// The kernel does not say. Such bytes are read as cold ones are, and reports count them.
  UNKNOWN
}
