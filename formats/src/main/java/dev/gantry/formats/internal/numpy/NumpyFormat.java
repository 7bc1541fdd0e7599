// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.formats.internal.archive.ZipDirectory;
import dev.gantry.formats.internal.npy.NpyHeader;
import dev.gantry.formats.internal.npy.NpyInput;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.spi.WeightsFormat;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// NumPy arrays: a `.npy` holds one tensor, which has the file's name without its suffix; an `.npz`
/// holds a tensor for each member of the archive.
public final class NumpyFormat implements WeightsFormat {
  static final String ARRAY_SUFFIX = ".npy";
  private static final String ARCHIVE_SUFFIX = ".npz";

  @Override
  public String name() {
    return "NumPy";
  }

  @Override
  public List<String> suffixes() {
    return List.of(ARRAY_SUFFIX, ARCHIVE_SUFFIX);
  }

  @Override
  public boolean recognises(String fileName, ByteBuffer start) {
    return NpyHeader.hasMagic(start)
        || (ZipDirectory.begins(start)
            && (hasArchiveName(fileName) || ZipDirectory.firstName(start).endsWith(ARRAY_SUFFIX)));
  }

  @Override
  public WeightsCatalogue open(FileBytes file) {
    ByteBuffer start = ByteBuffer.allocate((int) Math.min(8, file.length()));
    file.readFully(start, 0);
    boolean archive =
        ZipDirectory.begins(start.flip())
            || (hasArchiveName(file.file().fileName()) && !NpyHeader.hasMagic(start));
    return archive ? new NpzReader(file).read() : array(file);
  }

  private static WeightsCatalogue array(FileBytes file) {
    NpyHeader header = NpyHeader.read(NpyInput.ofFile(file, "", 0, file.length()));
    StoredTensor tensor = header.tensor(tensorName(file.file().fileName()), file.file(), 0);
    return new WeightsCatalogue("npy", List.of(file.file()), List.of(tensor), Map.of(), List.of());
  }

  static String tensorName(String fileName) {
    return fileName.endsWith(ARRAY_SUFFIX)
        ? fileName.substring(0, fileName.length() - ARRAY_SUFFIX.length())
        : fileName;
  }

  private static boolean hasArchiveName(String fileName) {
    return fileName.toLowerCase(Locale.ROOT).endsWith(ARCHIVE_SUFFIX);
  }
}
