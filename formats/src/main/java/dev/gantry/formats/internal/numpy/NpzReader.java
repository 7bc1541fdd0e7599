// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.archive.ZipDirectory;
import dev.gantry.formats.internal.archive.ZipMember;
import dev.gantry.formats.internal.npy.NpyHeader;
import dev.gantry.formats.internal.npy.NpyInput;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Reads an `.npz`: a ZIP archive whose members are `.npy` files, stored or deflated. A stored
/// array is loaded straight from the archive.
final class NpzReader {
  private final FileBytes bytes;
  private final List<StoredTensor> tensors = new ArrayList<>();
  private final List<WeightsCatalogue.Checksum> checksums = new ArrayList<>();
  private final Set<String> names = new HashSet<>();

  NpzReader(FileBytes bytes) {
    this.bytes = bytes;
  }

  WeightsCatalogue read() {
    ZipDirectory.read(bytes).forEach(this::add);
    return new WeightsCatalogue("npz", List.of(bytes.file()), tensors, Map.of(), checksums);
  }

  private void add(ZipMember member) {
    String name = NumpyFormat.tensorName(member.name());
    long offset = member.extent().offset();
    if (!names.add(name)) {
      throw new MalformedFileException(
          bytes.file(), offset, "duplicate-tensor", "tensor '" + name + "' occurs twice");
    }
    String subject = member.subject() + ": ";
    if (member.isDeflated()) {
      tensors.add(deflated(member, name, subject));
      return;
    }
    NpyHeader header =
        NpyHeader.read(NpyInput.ofFile(bytes, subject, offset, member.extent().length()));
    tensors.add(header.tensor(name, bytes.file(), offset));
    checksums.add(member.checksum());
  }

  /// Decompresses the header, and returns the tensor that it describes.
  private StoredTensor deflated(ZipMember member, String name, String subject) {
    try (InputStream stream = member.open(bytes)) {
      NpyHeader header =
          NpyHeader.read(
              new NpyInput(
                  bytes.file(),
                  subject,
                  member.extent().offset(),
                  member.size(),
                  true,
                  target -> member.fill(stream, target)));
      return member.tensor(
          name, header.dtype(), header.shape(), header.encoding(), header.headerBytes());
    } catch (IOException e) {
      throw member.damaged(e);
    }
  }
}
