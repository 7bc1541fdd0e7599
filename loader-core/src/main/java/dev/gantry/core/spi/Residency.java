// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

/// Whether bytes of a file are in memory.
public enum Residency {
  /// They are best read through the page cache.
  HOT,
  /// They are best read past it.
  COLD,
  /// The kernel does not say. They are read as cold ones are, and the report counts them.
  UNKNOWN
}
