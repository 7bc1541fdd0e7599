// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// The rule of the data section: the tensors, one after the other, are all of it. Each byte from
/// the end of the header to the end of the file belongs to exactly one.
record Layout(Location file, long dataStart, long fileLength) {
  SequencedMap<String, StoredTensor> place(Collection<TensorEntry> entries) {
    List<TensorEntry> inFile = new ArrayList<>(entries);
    inFile.sort(TensorEntry.IN_FILE);
    SequencedMap<String, StoredTensor> tensors = LinkedHashMap.newLinkedHashMap(inFile.size());
    long dataLength = fileLength - dataStart;
    long position = 0;
    for (TensorEntry entry : inFile) {
      if (entry.begin() > position) {
        throw malformed(
            position,
            "hole",
            (entry.begin() - position) + " bytes before '" + entry.name() + "' are no tensor's");
      }
      if (entry.begin() < position) {
        throw malformed(
            entry.begin(), "overlap", "tensor '" + entry.name() + "' begins inside another");
      }
      if (entry.end() > dataLength) {
        throw malformed(
            dataLength,
            "data-past-end",
            "tensor '" + entry.name() + "' ends " + (entry.end() - dataLength) + " bytes later");
      }
      Extent extent = new Extent(file, dataStart + entry.begin(), entry.end() - entry.begin());
      tensors.put(
          entry.name(), new StoredTensor(entry.name(), entry.dtype(), entry.shape(), extent));
      position = entry.end();
    }
    if (position < dataLength) {
      throw malformed(
          position,
          "trailing-bytes",
          (dataLength - position) + " bytes after the last tensor are no tensor's");
    }
    return tensors;
  }

  /// @param position bytes from the start of the data section
  private MalformedFileException malformed(long position, String kind, String detail) {
    return new MalformedFileException(file, dataStart + position, kind, detail);
  }
}
