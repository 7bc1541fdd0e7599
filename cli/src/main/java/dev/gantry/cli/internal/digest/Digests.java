// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.core.Device;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// Computes the SHA-256 of tensors in files: loads them to a device, in parts of up to 256 MiB or one larger
/// tensor, and reads them back from there.
public final class Digests {
  private static final long PART_BYTES = 256L << 20;
  private static final int CHUNK_BYTES = 4 << 20;

  private final GantrySession session;
  private final Device device;
  private final ProgressListener progress;
  private final MessageDigest sha256 = sha256();
  private long done;
  private long total;
  private TransferReport report = TransferReport.NOTHING;

  /// @param progress is told how many bytes are done
  Digests(GantrySession session, Device device, ProgressListener progress) {
    this.session = session;
    this.device = device;
    this.progress = progress;
  }

  /// Computes for each name the digest of its tensors end to end, in lower-case hexadecimal.
  ///
  /// @param names in the order of the result; one that no tensor has gets the digest of nothing
  /// @param tensors the tensors; those of one name follow one another
  SequencedMap<String, String> of(Collection<String> names, List<StoredTensor> tensors) {
    total = tensors.stream().mapToLong(StoredTensor::bytes).sum();
    SequencedMap<String, String> digests = new LinkedHashMap<>();
    names.forEach(name -> digests.put(name, digest()));
    int begin = 0;
    while (begin < tensors.size()) {
      int end = begin;
      for (long bytes = 0;
          end == begin || (end < tensors.size() && bytes + tensors.get(end).bytes() <= PART_BYTES);
          end++) {
        bytes += tensors.get(end).bytes();
      }
      try (LoadedTensors loaded =
              LoadedTensors.load(
                  session, tensors.subList(begin, end), device, TransferOptions.defaults());
          Arena arena = Arena.ofConfined()) {
        MemorySegment chunk = arena.allocate(CHUNK_BYTES);
        for (int i = begin; i < end; i++) {
          update(loaded.regions().get(i - begin), chunk);
          String name = tensors.get(i).name();
          if (i + 1 == tensors.size() || !tensors.get(i + 1).name().equals(name)) {
            digests.put(name, digest());
          }
        }
        report = report.plus(loaded.report());
      }
      begin = end;
    }
    return digests;
  }

  private String digest() {
    return HexFormat.of().formatHex(sha256.digest());
  }

  /// How many bytes each transport carried.
  TransferReport report() {
    return report;
  }

  private void update(Region region, MemorySegment chunk) {
    for (long at = 0; at < region.length(); at += chunk.byteSize()) {
      long length = Math.min(chunk.byteSize(), region.length() - at);
      region.slice(at, length).copyTo(chunk);
      sha256.update(chunk.asSlice(0, length).asByteBuffer());
    }
    done += region.length();
    progress.onProgress(done, total);
  }

  public static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
