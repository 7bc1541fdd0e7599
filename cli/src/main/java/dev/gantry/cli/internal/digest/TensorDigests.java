// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.cli.internal.input.TensorParts;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;

/// Reports the SHA-256 of each tensor of weights, or of each field of raw tensor shards. A
/// field's digest covers the values of all samples end to end, so it does not depend on how the
/// samples are divided into shards.
///
/// @param kind the member that holds the digests in JSON: `tensors` or `fields`
/// @param samples the number of samples in the shards; empty for weights
/// @param bytes the size of all values, without the padding between fields
/// @param transfer the report of the loads, which says how many bytes each transport carried
public record TensorDigests(
    String kind,
    SequencedMap<String, Digest> digests,
    Optional<Long> samples,
    long bytes,
    TransferReport transfer)
    implements Report {
  /// The most bytes of a field that are loaded as one tensor.
  private static final long PIECE_BYTES = 64L << 20;

  private static final int CHUNK_BYTES = 4 << 20;

  /// @param sha256 the SHA-256 in lower-case hexadecimal
  record Digest(DType dtype, TensorShape shape, String sha256) {}

  /// Compares the checksums in the files, then computes the digests of weights.
  public static TensorDigests of(GantrySession session, WeightsCatalogue weights, Device device) {
    weights.verify(session);
    SequencedMap<String, Digest> digests = new LinkedHashMap<>();
    weights
        .tensors()
        .forEach(
            (name, tensor) -> digests.put(name, new Digest(tensor.dtype(), tensor.shape(), "")));
    List<StoredTensor> tensors = List.copyOf(weights.tensors().values());
    return of(session, device, "tensors", Optional.empty(), digests, tensors);
  }

  /// Compares all checksums, then computes the digests of shards. Therefore each digest covers
  /// the bytes that were written.
  public static TensorDigests of(GantrySession session, ShardSet set, Device device) {
    verify(session, set);
    SequencedMap<String, Digest> digests = new LinkedHashMap<>();
    set.fields()
        .forEach(field -> digests.put(field.name(), new Digest(field.dtype(), field.shape(), "")));
    return of(session, device, "fields", Optional.of(set.samples()), digests, pieces(set));
  }

  /// Loads tensors to a device part by part, copies them back to the host and computes their
  /// digests.
  ///
  /// @param digests the digests to fill in, by name; a name without a tensor gets the digest of
  ///     no bytes
  /// @param tensors the tensors to load; tensors of one name are consecutive, and share one
  ///     digest
  private static TensorDigests of(
      GantrySession session,
      Device device,
      String kind,
      Optional<Long> samples,
      SequencedMap<String, Digest> digests,
      List<StoredTensor> tensors) {
    long total = tensors.stream().mapToLong(StoredTensor::bytes).sum();
    TransferReport report = TransferReport.NOTHING;
    MessageDigest sha256 = sha256();
    digests.replaceAll((_, digest) -> ended(digest, sha256));
    try (Progress bar = new Progress("digest", total);
        Arena arena = Arena.ofConfined()) {
      MemorySegment chunk = arena.allocate(CHUNK_BYTES);
      long done = 0;
      for (int begin = 0, end; begin < tensors.size(); begin = end) {
        end = TensorParts.end(tensors, begin);
        try (LoadedTensors loaded =
            LoadedTensors.load(
                session, tensors.subList(begin, end), device, TransferOptions.defaults())) {
          for (int i = begin; i < end; i++) {
            Region region = loaded.regions().get(i - begin);
            update(sha256, region, chunk);
            done += region.length();
            bar.onProgress(done, total);
            String name = tensors.get(i).name();
            if (i + 1 == tensors.size() || !tensors.get(i + 1).name().equals(name)) {
              var _ = digests.computeIfPresent(name, (_, digest) -> ended(digest, sha256));
            }
          }
          report = report.plus(loaded.report());
        }
      }
    }
    return new TensorDigests(kind, digests, samples, total, report);
  }

  private static void update(MessageDigest sha256, Region region, MemorySegment chunk) {
    for (long at = 0; at < region.length(); at += chunk.byteSize()) {
      long length = Math.min(chunk.byteSize(), region.length() - at);
      region.slice(at, length).copyTo(chunk);
      sha256.update(chunk.asSlice(0, length).asByteBuffer());
    }
  }

  private static Digest ended(Digest digest, MessageDigest sha256) {
    return new Digest(digest.dtype(), digest.shape(), ended(sha256));
  }

  static String ended(MessageDigest sha256) {
    return HexFormat.of().formatHex(sha256.digest());
  }

  public static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  public static void verify(GantrySession session, ShardSet set) {
    try (Progress bar = new Progress("verify", set.totalBytes())) {
      set.verify(session, 0, bar, new Cancellation());
    }
  }

  private static List<StoredTensor> pieces(ShardSet set) {
    List<StoredTensor> pieces = new ArrayList<>();
    for (int i = 0; i < set.fields().size(); i++) {
      Field field = set.fields().get(i);
      for (Shard shard : set.shards()) {
        long bytes = shard.samples() * field.sampleBytes();
        for (long done = 0; done < bytes; done += PIECE_BYTES) {
          long step = Math.min(PIECE_BYTES, bytes - done);
          Extent extent = new Extent(shard.location(), shard.offset(i) + done, step);
          pieces.add(new StoredTensor(field.name(), DType.U8, TensorShape.of(step), extent));
        }
      }
    }
    return pieces;
  }

  @Override
  public void print(PrintWriter out) {
    digests.forEach((name, digest) -> out.println(digest.sha256() + "  " + Table.line(name)));
  }

  @Override
  public Object json() {
    return Json.object()
        .with(kind, digests)
        .with("samples", samples)
        .with("bytes", bytes)
        .with("transport", Transfers.json(transfer));
  }
}
