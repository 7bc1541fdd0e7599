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
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// SHA-256 of tensors in files, loaded through the engine to a device and read back from there.
/// Memory is a part's of some 256 MiB, or the largest tensor's.
public final class Digests {
  private static final long PART_BYTES = 256L << 20;
  private static final int CHUNK_BYTES = 4 << 20;

  /// Bytes that a digest is taken of.
  ///
  /// @param last whether no more come under this name
  private record Piece(String name, StoredTensor tensor, boolean last) {
    long length() {
      return tensor.bytes();
    }
  }

  private final GantrySession session;
  private final Device device;
  private final ProgressListener progress;
  private final SequencedMap<String, String> digests = new LinkedHashMap<>();
  private final List<Piece> part = new ArrayList<>();
  private final MessageDigest sha256 = sha256();
  private long partBytes;
  private long done;
  private long total;
  private TransferReport report = TransferReport.NOTHING;

  /// @param progress hears how many bytes are done
  Digests(GantrySession session, Device device, ProgressListener progress) {
    this.session = session;
    this.device = device;
    this.progress = progress;
  }

  /// Computes for each name the digest of its tensors end to end, in lower-case hexadecimal; names and tensors in the
  /// order in which they are given.
  SequencedMap<String, String> of(SequencedMap<String, List<StoredTensor>> all) {
    total = all.values().stream().flatMap(List::stream).mapToLong(StoredTensor::bytes).sum();
    all.forEach((name, tensors) -> {
      if (tensors.isEmpty()) {
        // Those before it come first.
        digestPart();
        digests.put(name, HexFormat.of().formatHex(sha256.digest()));
      }
      for (int i = 0; i < tensors.size(); i++) {
        add(new Piece(name, tensors.get(i), i == tensors.size() - 1));
      }
    });
    digestPart();
    return digests;
  }

  private void add(Piece piece) {
    if (partBytes > 0 && partBytes + piece.length() > PART_BYTES) {
      digestPart();
    }
    part.add(piece);
    partBytes += piece.length();
  }

  /// How many bytes each transport carried.
  TransferReport report() {
    return report;
  }

  private void digestPart() {
    List<StoredTensor> tensors = part.stream().map(Piece::tensor).toList();
    try (LoadedTensors loaded =
            LoadedTensors.load(session, tensors, device, TransferOptions.defaults());
        Arena arena = Arena.ofConfined()) {
      MemorySegment chunk = arena.allocate(CHUNK_BYTES);
      for (int i = 0; i < part.size(); i++) {
        update(loaded.regions().get(i), chunk);
        if (part.get(i).last()) {
          digests.put(part.get(i).name(), HexFormat.of().formatHex(sha256.digest()));
        }
      }
      report = report.plus(loaded.report());
    }
    part.clear();
    partBytes = 0;
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
