// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/// The texts of one file, one after the other.
interface Documents extends AutoCloseable {
  /// The most characters of a text: a tokenizer holds all of one, many times over.
  int MAX_CHARACTERS = 8 << 20;

  /// @return null after the last one
  /// @throws dev.gantry.core.MalformedFileException if the file is damaged, or has no text there
  @Nullable String next() throws IOException;

  @Override
  void close() throws IOException;
}
