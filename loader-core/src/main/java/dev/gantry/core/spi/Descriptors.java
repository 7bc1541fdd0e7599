// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

/// The kernel's descriptors of an open file.
///
/// @param buffered the one that goes through the page cache, or -1
/// @param direct the one that goes past it, or -1
/// @param absence why there is no descriptor at all; empty where there is one
/// @param directAbsence why none goes past the page cache; empty where one does
public record Descriptors(int buffered, int direct, String absence, String directAbsence) {
  /// The descriptors of a file that has none.
  public static Descriptors none(String absence) {
    return new Descriptors(-1, -1, absence, absence);
  }
}
