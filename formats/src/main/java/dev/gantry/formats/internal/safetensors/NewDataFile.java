// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.commit.NewFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.SortedMap;

/// A safetensors file to be written. Immutable.
///
/// The file is the header, padded with spaces to a page of 4096 bytes, and then the tensors, the widest
/// dtypes first and tensors of one width by name. So each tensor is aligned to its dtype, in the file and
/// wherever the file is mapped.
///
/// @param file the file to write: part 0 is the header, on the heap; part `i + 1` is tensor `i`, as in a
///     report's [checksums][dev.gantry.core.internal.commit.WriteReport.Checksums]
/// @param tensors the tensors in the order of their bytes
public record NewDataFile(NewFile file, List<NewTensor> tensors) {
  /// Orders tensors by width: each width of a byte or more is a multiple of the next one, and dtypes of
  /// less than a byte come last, where they misalign no other tensor.
  private static final Comparator<NewTensor> IN_FILE =
      Comparator.comparingInt((NewTensor tensor) -> tensor.dtype().bits())
          .reversed()
          .thenComparing(NewTensor::name);

  public NewDataFile {
    tensors = List.copyOf(tensors);
  }

  /// @throws dev.gantry.core.MisuseException if the header gets too long
  static NewDataFile of(
      Path file, Collection<NewTensor> tensors, SortedMap<String, String> metadata) {
    List<NewTensor> inFile = tensors.stream().sorted(IN_FILE).toList();
    byte[] header = HeaderWriter.header(inFile, metadata);
    List<Source> parts = new ArrayList<>(1 + inFile.size());
    parts.add(new Memory.OnHost(MemorySegment.ofArray(header)));
    inFile.forEach(tensor -> parts.add(tensor.source()));
    return new NewDataFile(new NewFile(file, parts), inFile);
  }

  /// The file's name, without its folder.
  public String name() {
    return String.valueOf(file.file().getFileName());
  }

  /// The size of all tensors together, in bytes.
  public long dataBytes() {
    return tensors.stream().mapToLong(tensor -> tensor.source().length()).sum();
  }
}
