// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.MisuseException;

/// The source of a field's values.
public sealed interface FieldSource {
  /// The catalogue writes the values on the CPU, by [SampleCatalogue#write].
  record HostWritten() implements FieldSource {}

  /// The values lie in files as memory holds them: [SampleCatalogue#pieces] tells where.
  ///
  /// @param spacing the most bytes from the start of one sample's value to the start of the next one's,
  ///     over all data files: a value's size if values lie end to end. It bounds the memory of a batch: too
  ///     small a spacing makes a batch fail, and too large a one wastes memory
  /// @param aligned whether every value begins at a multiple of its dtype's size in the file
  record InFiles(long spacing, boolean aligned) implements FieldSource {
    public InFiles {
      if (spacing < 0) {
        throw new MisuseException("spacing must be at least 0 (was " + spacing + ")");
      }
    }
  }
}
