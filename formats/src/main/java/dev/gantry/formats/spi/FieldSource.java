// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.MisuseException;

/// The source of a field's values.
public sealed interface FieldSource {
  /// The catalogue writes them, on the CPU: [SampleCatalogue#write].
  record HostWritten() implements FieldSource {}

  /// They are in files, byte for byte: [SampleCatalogue#pieces].
  ///
  /// @param spacing the most bytes from the start of one sample's value to the start of the next
  ///     one's, over all data files: a value's size where they lie end to end. It bounds the memory of
  ///     a batch, so a spacing that is too small fails, and one that is too large wastes
  /// @param aligned whether every value begins at a multiple of its dtype's size in the file
  record InFiles(long spacing, boolean aligned) implements FieldSource {
    public InFiles {
      if (spacing < 0) {
        throw new MisuseException("spacing must be at least 0 (was " + spacing + ")");
      }
    }
  }
}
