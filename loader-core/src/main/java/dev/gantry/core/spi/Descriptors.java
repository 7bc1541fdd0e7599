// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

/// The kernel's descriptors of an open file.
///
/// @param buffered the descriptor for I/O through the page cache, or -1 if there is none
/// @param direct the descriptor for I/O past the page cache, or -1 if there is none
/// @param absence why there is no descriptor at all; empty if there is a descriptor
/// @param directAbsence why there is no descriptor for I/O past the page cache; empty if there is
public record Descriptors(int buffered, int direct, String absence, String directAbsence) {
  /// Returns the value for a file without descriptors.
  public static Descriptors none(String absence) {
    return new Descriptors(-1, -1, absence, absence);
  }
}
