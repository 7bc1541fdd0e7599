// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;

/// The record that breaks a rule.
///
/// @param offset of its header
record RecordAddress(Location file, long number, long offset) {
  MalformedFileException fault(String kind, String detail) {
    return new MalformedFileException(file, offset, kind, "record " + number + ": " + detail);
  }
}
