// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.npy.NpyHeader;
import dev.gantry.formats.internal.npy.NpyInput;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.ZipEntry;
import org.apache.commons.compress.archivers.zip.ZipArchiveEntry;
import org.apache.commons.compress.archivers.zip.ZipFile;

/// Reads an `.npz`: a ZIP archive whose members are `.npy` files, stored or deflated. A stored array is
/// loaded straight from its place in the archive.
final class NpzReader {
  /// The most bytes of a directory: more than any real one has, so that none can fill the heap.
  private static final long MAX_DIRECTORY_BYTES = 32 << 20;

  private final FileBytes bytes;
  private final Location file;
  private final List<StoredTensor> tensors = new ArrayList<>();
  private final List<WeightsCatalogue.Checksum> checksums = new ArrayList<>();
  private final Set<String> names = new HashSet<>();

  NpzReader(FileBytes bytes) {
    this.bytes = bytes;
    this.file = bytes.file();
  }

  WeightsCatalogue read() {
    List<ZipArchiveEntry> members = members();
    requireApart(members);
    members.forEach(this::add);
    return new WeightsCatalogue("npz", List.of(file), tensors, Map.of(), checksums);
  }

  /// Returns the members in the order of the directory, without folders.
  private List<ZipArchiveEntry> members() {
    var channel = new ArchiveChannel(bytes, 0, bytes.length(), MAX_DIRECTORY_BYTES);
    try (ZipFile archive = ZipFile.builder().setSeekableByteChannel(channel).get()) {
      return Collections.list(archive.getEntries()).stream()
          .filter(entry -> !entry.isDirectory())
          .toList();
    } catch (IOException | IllegalArgumentException damage) {
      throw malformed(
          0,
          "invalid-archive",
          "the directory of the ZIP archive is missing or damaged: " + reason(damage));
    }
  }

  private static String reason(Exception damage) {
    Throwable cause = damage.getCause();
    return String.valueOf((cause == null ? damage : cause).getMessage());
  }

  /// Refuses members that share bytes: an archive with such members could unpack to far more than its file holds.
  private void requireApart(List<ZipArchiveEntry> members) {
    List<ZipArchiveEntry> inFile =
        members.stream().sorted(Comparator.comparingLong(ZipArchiveEntry::getDataOffset)).toList();
    long end = 0;
    for (ZipArchiveEntry member : inFile) {
      long offset = member.getDataOffset();
      if (offset < end || offset < 0) {
        throw malformed(Math.max(0, offset), "overlap", subject(member) + " begins inside another");
      }
      if (member.getCompressedSize() < 0
          || member.getSize() < 0
          || member.getCompressedSize() > bytes.length() - offset) {
        throw malformed(
            offset, "member-past-end", subject(member) + " ends after the end of the file");
      }
      end = offset + member.getCompressedSize();
    }
  }

  private void add(ZipArchiveEntry member) {
    if (member.getGeneralPurposeBit().usesEncryption()) {
      throw malformed(member.getDataOffset(), "encrypted", subject(member) + " is encrypted");
    }
    String name = NumpyFormat.tensorName(member.getName());
    if (!names.add(name)) {
      throw malformed(member.getDataOffset(), "duplicate-tensor", "a second tensor '" + name + "'");
    }
    Extent extent = new Extent(file, member.getDataOffset(), member.getCompressedSize());
    switch (member.getMethod()) {
      case ZipEntry.STORED -> addStored(member, name, extent);
      case ZipEntry.DEFLATED -> addDeflated(member, name, extent);
      default ->
          throw malformed(
              extent.offset(),
              "unknown-compression",
              "%s is compressed by method %s; Gantry reads stored and deflated members"
                  .formatted(subject(member), member.getMethod()));
    }
  }

  private void addStored(ZipArchiveEntry member, String name, Extent extent) {
    if (member.getSize() != member.getCompressedSize()) {
      throw malformed(
          extent.offset(), "size-mismatch", subject(member) + " is stored in two different sizes");
    }
    NpyHeader header =
        NpyHeader.read(
            NpyInput.ofFile(bytes, subject(member) + ": ", extent.offset(), extent.length()));
    tensors.add(header.tensor(name, file, extent.offset()));
    checksums.add(new WeightsCatalogue.Checksum(extent, (int) member.getCrc()));
  }

  private void addDeflated(ZipArchiveEntry member, String name, Extent extent) {
    DeflatedMember deflated = new DeflatedMember(extent, member.getSize(), (int) member.getCrc());
    deflated.requirePlausible();
    tensors.add(deflated.tensor(name, subject(member) + ": ", bytes));
  }

  private static String subject(ZipArchiveEntry member) {
    return "member '" + member.getName() + "'";
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(file, offset, kind, detail);
  }
}
