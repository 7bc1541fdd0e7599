// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import java.nio.file.Path;
import java.util.List;

/// A file to be written, which is the concatenation of its parts.
///
/// @param file the file's name, in a folder that exists. An existing file of that name is replaced
///     when the new file is complete
/// @param parts the parts in the order of the file; each may be empty
public record NewFile(Path file, List<Source> parts) {
  /// @throws MisuseException if `file` names no file, or the parts are longer together
  ///     than a file can be
  public NewFile {
    if (file.getFileName() == null) {
      throw new MisuseException("a new file needs a file name (was " + file + ")");
    }
    parts = List.copyOf(parts);
    long size = 0;
    for (Source part : parts) {
      if (part.length() > Long.MAX_VALUE - size) {
        throw new MisuseException(file + " would have more bytes than a file can hold");
      }
      size += part.length();
    }
  }

  /// Returns the file's size in bytes.
  public long size() {
    return parts.stream().mapToLong(Source::length).sum();
  }
}
