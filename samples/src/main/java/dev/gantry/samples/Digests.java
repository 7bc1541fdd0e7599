package dev.gantry.samples;

import dev.gantry.core.Device;
import dev.gantry.core.Gantry;
import dev.gantry.core.Loaded;
import dev.gantry.core.Region;
import dev.gantry.core.io.TransferOptions;
import dev.gantry.core.io.TransferReport;
import dev.gantry.core.plan.Wanted;
import dev.gantry.formats.safetensors.TensorInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// SHA-256 of tensors, loaded through the engine to a device and read back from there. Memory is a
/// part's of some 256 MiB, or the largest tensor's.
final class Digests {
  private static final long PART_BYTES = 256L << 20;
  private static final int CHUNK_BYTES = 4 << 20;

  private final Gantry session;
  private final Device device;
  private final SequencedMap<String, String> digests = new LinkedHashMap<>();
  private TransferReport report = TransferReport.NOTHING;

  Digests(Gantry session, Device device) {
    this.session = session;
    this.device = device;
  }

  /// Lower-case hexadecimal by tensor name, in the order of `tensors`.
  SequencedMap<String, String> of(Collection<TensorInfo> tensors) {
    List<TensorInfo> part = new ArrayList<>();
    long bytes = 0;
    for (TensorInfo tensor : tensors) {
      if (bytes > 0 && bytes + tensor.extent().length() > PART_BYTES) {
        digestPart(part);
        part.clear();
        bytes = 0;
      }
      part.add(tensor);
      bytes += tensor.extent().length();
    }
    digestPart(part);
    return digests;
  }

  /// By which paths the bytes came.
  TransferReport report() {
    return report;
  }

  private void digestPart(List<TensorInfo> part) {
    List<Wanted> wanted = part.stream().map(TensorInfo::wanted).toList();
    try (Loaded loaded = session.load(wanted, device, TransferOptions.defaults());
        Arena arena = Arena.ofConfined()) {
      MemorySegment chunk = arena.allocate(CHUNK_BYTES);
      for (int i = 0; i < part.size(); i++) {
        digests.put(part.get(i).name(), digest(loaded.regions().get(i), chunk));
      }
      report = report.plus(loaded.report());
    }
  }

  private static String digest(Region region, MemorySegment chunk) {
    MessageDigest sha256 = sha256();
    for (long at = 0; at < region.length(); at += chunk.byteSize()) {
      long length = Math.min(chunk.byteSize(), region.length() - at);
      region.slice(at, length).copyTo(chunk);
      sha256.update(chunk.asSlice(0, length).asByteBuffer());
    }
    return HexFormat.of().formatHex(sha256.digest());
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
