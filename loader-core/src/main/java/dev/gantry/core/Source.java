// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.Objects;

/// Bytes to be written, in memory or in another file. They must not change until the write has ended.
public sealed interface Source permits Memory, Source.FilePart {
  /// The number of bytes.
  long length();

  /// A part of this source.
  Source slice(long offset, long bytes);

  /// A part of a file.
  record FilePart(Extent extent) implements Source {
    public FilePart {
      MisuseException.requireGiven("extent", extent);
    }

    @Override
    public long length() {
      return extent.length();
    }

    @Override
    public FilePart slice(long offset, long bytes) {
      Objects.checkFromIndexSize(offset, bytes, extent.length());
      return new FilePart(new Extent(extent.file(), extent.offset() + offset, bytes));
    }
  }
}
