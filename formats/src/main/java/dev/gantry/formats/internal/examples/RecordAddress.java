// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.MalformedFileException;
import java.nio.file.Path;

/// Which record it is that breaks a rule.
///
/// @param offset of its header
record RecordAddress(Path file, long number, long offset) {
  MalformedFileException fault(String kind, String detail) {
    return new MalformedFileException(file, offset, kind, "record " + number + ": " + detail);
  }
}
