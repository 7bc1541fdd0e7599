// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/// Reads the texts of one file in their order.
interface Documents extends AutoCloseable {
  /// The most characters of a text. The limit exists because a tokenizer holds a whole text in
  /// memory, many times over.
  int MAX_CHARACTERS = 8 << 20;

  /// @return the next text; null after the last
  /// @throws dev.gantry.core.MalformedFileException if the file is damaged, or the next entry has
  ///     no text
  @Nullable String next() throws IOException;

  @Override
  void close() throws IOException;
}
