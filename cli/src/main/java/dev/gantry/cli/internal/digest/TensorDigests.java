// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

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
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.weights.TensorReading;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;

/// The SHA-256 of each tensor of some weights, or of each field of raw tensor shards: of the values
/// of all samples end to end, however they are cut into shards.
///
/// @param kind of what has a digest, as in JSON: `tensors` or `fields`
/// @param samples of shards; empty for weights
/// @param bytes of the values, without what lies between fields
/// @param transfer how many bytes each transport carried
public record TensorDigests(
    String kind, List<Digest> digests, Optional<Long> samples, long bytes, TransferReport transfer)
    implements Report {
  /// What is loaded of a field at a time.
  private static final long PIECE_BYTES = 64L << 20;

  /// @param sha256 lower-case hexadecimal
  record Digest(String name, DType dtype, TensorShape shape, String sha256) {
    static Digest of(String name, DType dtype, TensorShape shape, Map<String, String> byName) {
      return new Digest(name, dtype, shape, Objects.requireNonNull(byName.get(name)));
    }
  }

  /// Compares the files' own checksums first.
  public static TensorDigests of(GantrySession session, WeightsCatalogue weights, Device device) {
    SequencedMap<String, List<StoredTensor>> tensors = new LinkedHashMap<>();
    for (StoredTensor tensor : weights.tensors().values()) {
      tensors.put(tensor.name(), List.of(tensor));
    }
    TensorReading.verify(session, weights);
    long bytes = weights.totalBytes();
    try (Progress bar = new Progress("digest", bytes)) {
      Digests digests = new Digests(session, device, bar);
      SequencedMap<String, String> byName = digests.of(tensors);
      List<Digest> all =
          weights.tensors().values().stream()
              .map(each -> Digest.of(each.name(), each.dtype(), each.shape(), byName))
              .toList();
      return new TensorDigests("tensors", all, Optional.empty(), bytes, digests.report());
    }
  }

  /// Compares all checksums first: a digest is to be of what was written.
  public static TensorDigests of(GantrySession session, ShardSet set, Device device) {
    verify(session, set);
    long bytes =
        set.fields().stream().mapToLong(field -> field.sampleBytes() * set.samples()).sum();
    try (Progress bar = new Progress("digest", bytes)) {
      Digests digests = new Digests(session, device, bar);
      SequencedMap<String, String> byName = digests.of(extents(set));
      List<Digest> all =
          set.fields().stream()
              .map(each -> Digest.of(each.name(), each.dtype(), each.shape(), byName))
              .toList();
      Optional<Long> samples = Optional.of(set.samples());
      return new TensorDigests("fields", all, samples, bytes, digests.report());
    }
  }

  public static void verify(GantrySession session, ShardSet set) {
    try (Progress bar = new Progress("verify", set.totalBytes())) {
      set.verify(session, 0, bar, new Cancellation());
    }
  }

  private static SequencedMap<String, List<StoredTensor>> extents(ShardSet set) {
    SequencedMap<String, List<StoredTensor>> extents = new LinkedHashMap<>();
    for (int i = 0; i < set.fields().size(); i++) {
      Field field = set.fields().get(i);
      List<StoredTensor> pieces = new ArrayList<>();
      for (Shard shard : set.shards()) {
        long bytes = shard.samples() * field.sampleBytes();
        for (long done = 0; done < bytes; done += PIECE_BYTES) {
          long step = Math.min(PIECE_BYTES, bytes - done);
          Extent extent = new Extent(shard.location(), shard.offset(i) + done, step);
          pieces.add(new StoredTensor(field.name(), DType.U8, TensorShape.of(step), extent));
        }
      }
      extents.put(field.name(), pieces);
    }
    return extents;
  }

  @Override
  public void print(PrintWriter out) {
    digests.forEach(each -> out.println(each.sha256() + "  " + Table.line(each.name())));
  }

  @Override
  public Object json() {
    return Json.object()
        .with(kind, Json.byName(digests, Digest::name, TensorDigests::json))
        .with("samples", samples)
        .with("bytes", bytes)
        .with("transport", Transfers.json(transfer));
  }

  private static Object json(Digest digest) {
    return Json.object()
        .with("dtype", digest.dtype().name())
        .with("shape", digest.shape())
        .with("sha256", digest.sha256());
  }
}
