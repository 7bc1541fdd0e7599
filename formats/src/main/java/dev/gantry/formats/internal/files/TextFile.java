// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/// Reads small text files.
public final class TextFile {
  private TextFile() {}

  /// Reads a whole file of UTF-8.
  ///
  /// @param most the most bytes that the file may have
  /// @throws MalformedFileException of kind `too-large` if the file has more bytes, or
  ///     `invalid-utf8`
  /// @throws dev.gantry.core.TransferException if it cannot be read
  public static String read(GantrySession session, Location file, long most) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      if (bytes.length() > most) {
        throw new MalformedFileException(file, 0, "too-large", "more than " + most + " bytes");
      }
      ByteBuffer text = ByteBuffer.allocate((int) bytes.length());
      bytes.readFully(text, 0);
      return StandardCharsets.UTF_8.newDecoder().decode(text.flip()).toString();
    } catch (CharacterCodingException _) {
      throw new MalformedFileException(file, 0, "invalid-utf8", "bytes that are not UTF-8");
    }
  }

  /// Reads a file that may belong to another program; the result is an empty text if the file is
  /// too large or no UTF-8.
  ///
  /// @throws dev.gantry.core.TransferException if it cannot be read
  public static String readIfText(GantrySession session, Location file, long most) {
    try {
      return read(session, file, most);
    } catch (MalformedFileException _) {
      return "";
    }
  }
}
