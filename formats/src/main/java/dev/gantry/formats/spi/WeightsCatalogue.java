// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.zip.CRC32;

/// The tensors of all data files of some weights, with the extents of their bytes.
///
/// A format reads only headers to make a catalogue, and keeps no file open. Immutable and safe
/// for use by several threads.
public final class WeightsCatalogue {
  private final String format;
  private final List<Location> files;
  private final SequencedMap<String, StoredTensor> tensors;
  private final SequencedMap<String, String> metadata;
  private final List<Checksum> checksums;
  private final long totalBytes;
  private final SequencedMap<String, StoredTensor> quantised;

  /// A checksum that a file gives for some of its bytes.
  ///
  /// @param extent the bytes, such as a member of an archive
  /// @param crc32 as ZIP and gzip compute it
  public record Checksum(Extent extent, int crc32) {
    private static final int STEP_BYTES = 64 << 10;

    /// @param found the CRC-32 of the bytes
    /// @throws MalformedFileException of kind `checksum-mismatch` if the checksums differ
    public void requireSame(int found) {
      if (found != crc32) {
        throw new MalformedFileException(
            extent.file(),
            extent.offset(),
            "checksum-mismatch",
            String.format(
                Locale.ROOT, "the bytes have CRC-32 %08x, and the file says %08x", found, crc32));
      }
    }

    private void verify(Session session) {
      CRC32 sum = new CRC32();
      ByteBuffer buffer = ByteBuffer.allocate(STEP_BYTES);
      try (FileBytes file = FileBytes.open(session, extent.file())) {
        for (long at = extent.offset(); at < extent.end(); ) {
          buffer.clear().limit((int) Math.min(STEP_BYTES, extent.end() - at));
          at += buffer.remaining();
          file.readFully(buffer, at - buffer.remaining());
          sum.update(buffer.flip());
        }
      }
      requireSame((int) sum.getValue());
    }
  }

  /// @param format the format's name as `inspect` prints it, such as `safetensors`, `npy` or `npz`
  /// @param files the data files, in an order of the format's choice
  /// @param tensors the tensors in the order in which a load returns them; each name comes once
  /// @param metadata the files' notes; empty if the format has none
  /// @param checksums the files' own checksums that a load does not compare
  public WeightsCatalogue(
      String format,
      List<Location> files,
      Collection<StoredTensor> tensors,
      Map<String, String> metadata,
      List<Checksum> checksums) {
    this(format, files, tensors, metadata, checksums, List.of());
  }

  /// @param quantised the tensors once more as the model has them, with [Encoding.Quantised] ones instead of their
  ///     stored parts, where the files themselves say how they are quantised; else empty
  public WeightsCatalogue(
      String format,
      List<Location> files,
      Collection<StoredTensor> tensors,
      Map<String, String> metadata,
      List<Checksum> checksums,
      Collection<StoredTensor> quantised) {
    this.format = format;
    this.files = List.copyOf(files);
    this.tensors = byName(tensors);
    this.quantised = byName(quantised);
    this.metadata = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(metadata));
    this.checksums = List.copyOf(checksums);
    this.totalBytes = totalBytes(tensors);
  }

  private static long totalBytes(Collection<StoredTensor> tensors) {
    long bytes = 0;
    for (StoredTensor tensor : tensors) {
      bytes += tensor.bytes();
      if (bytes < 0) {
        throw new MalformedFileException(
            tensor.extent().file(),
            tensor.extent().offset(),
            "size-overflow",
            "the tensors up to '" + tensor.name() + "' have more bytes than can be counted");
      }
    }
    return bytes;
  }

  private static SequencedMap<String, StoredTensor> byName(Collection<StoredTensor> tensors) {
    SequencedMap<String, StoredTensor> byName = LinkedHashMap.newLinkedHashMap(tensors.size());
    tensors.forEach(tensor -> byName.put(tensor.name(), tensor));
    return Collections.unmodifiableSequencedMap(byName);
  }

  /// The tensors as the model has them; empty unless the files themselves say how they are quantised.
  public SequencedMap<String, StoredTensor> quantised() {
    return quantised;
  }

  /// The format's name as `inspect` prints it.
  public String format() {
    return format;
  }

  /// The tensors by name, in the order of the catalogue.
  public SequencedMap<String, StoredTensor> tensors() {
    return tensors;
  }

  /// The notes of all files; where they differ, those of the first file.
  public SequencedMap<String, String> metadata() {
    return metadata;
  }

  /// The data files.
  public List<Location> files() {
    return files;
  }

  /// The files' own checksums that a load does not compare, since it would have to read every byte on the
  /// CPU.
  public List<Checksum> checksums() {
    return checksums;
  }

  /// Reads all bytes that have a checksum in the files, and compares the checksums.
  ///
  /// @param session opens the files by its stores
  /// @throws MalformedFileException of kind `checksum-mismatch`
  /// @throws dev.gantry.core.TransferException if a file cannot be read
  public void verify(Session session) {
    checksums.forEach(expected -> expected.verify(session));
  }

  /// The size of all tensors together in memory, in bytes.
  public long totalBytes() {
    return totalBytes;
  }
}
