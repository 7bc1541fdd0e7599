// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/// Indexes of samples, which record checksums of their tensors and of themselves.
public final class IndexFiles {
  private static final String SUM = "crc32c";

  private IndexFiles() {}

  /// Corrects the checksums of an index, if the index is a safetensors file.
  public static byte[] mended(byte[] index, Path file) {
    SafetensorsHeader header;
    try {
      header = SafetensorsHeader.read(GantrySession.shared(), file);
    } catch (MalformedFileException _) {
      return index;
    }
    MemorySegment bytes = MemorySegment.ofArray(index);
    SortedMap<String, String> notes = new TreeMap<>(header.metadata());
    String text = new String(index, StandardCharsets.ISO_8859_1);
    for (Map.Entry<String, StoredTensor> tensor : header.tensors().entrySet()) {
      String note = SUM + "/" + tensor.getKey();
      String old = notes.get(note);
      long from = tensor.getValue().extent().offset();
      if (old != null) {
        String sum = IndexNotes.digits(Crc32c.of(bytes.asSlice(from, tensor.getValue().bytes())));
        notes.put(note, sum);
        put(text, index, note, old, sum);
      }
    }
    String old = notes.get(SUM);
    if (old != null) {
      put(text, index, SUM, old, IndexNotes.digits(IndexNotes.checksum(notes)));
    }
    return index;
  }

  private static void put(String text, byte[] index, String note, String old, String sum) {
    String member = "\"" + note + "\":\"";
    int at = text.indexOf(member + old);
    if (at >= 0 && old.length() == sum.length()) {
      byte[] digits = sum.getBytes(StandardCharsets.US_ASCII);
      System.arraycopy(digits, 0, index, at + member.length(), digits.length);
    }
  }
}
