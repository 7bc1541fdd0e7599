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

/// Reports the SHA-256 of each tensor of some weights, or of each field of raw tensor shards. A field's
/// digest is that of the values of all samples end to end, however they are cut into shards.
///
/// @param kind what the digests are of, as JSON names it: `tensors` or `fields`
/// @param samples of shards; empty for weights
/// @param bytes of the values, without what lies between fields
/// @param transfer how many bytes each transport carried
public record TensorDigests(
    String kind,
    SequencedMap<String, Digest> digests,
    Optional<Long> samples,
    long bytes,
    TransferReport transfer)
    implements Report {
  /// How many bytes of a field are loaded at a time.
  private static final long PIECE_BYTES = 64L << 20;

  /// @param sha256 lower-case hexadecimal
  record Digest(DType dtype, TensorShape shape, String sha256) {}

  private record Described(String name, DType dtype, TensorShape shape) {}

  /// Computes the digests of weights, after it has compared the files' own checksums.
  public static TensorDigests of(GantrySession session, WeightsCatalogue weights, Device device) {
    weights.verify(session);
    List<StoredTensor> tensors = List.copyOf(weights.tensors().values());
    return of(
        session,
        device,
        "tensors",
        Optional.empty(),
        tensors.stream()
            .map(each -> new Described(each.name(), each.dtype(), each.shape()))
            .toList(),
        tensors);
  }

  /// Computes the digests of shards, after it has compared all checksums, so that each digest is of what was
  /// written.
  public static TensorDigests of(GantrySession session, ShardSet set, Device device) {
    verify(session, set);
    return of(
        session,
        device,
        "fields",
        Optional.of(set.samples()),
        set.fields().stream()
            .map(each -> new Described(each.name(), each.dtype(), each.shape()))
            .toList(),
        pieces(set));
  }

  private static TensorDigests of(
      GantrySession session,
      Device device,
      String kind,
      Optional<Long> samples,
      List<Described> described,
      List<StoredTensor> pieces) {
    long bytes = pieces.stream().mapToLong(StoredTensor::bytes).sum();
    try (Progress bar = new Progress("digest", bytes)) {
      Digests digests = new Digests(session, device, bar);
      Map<String, String> byName =
          digests.of(described.stream().map(Described::name).toList(), pieces);
      SequencedMap<String, Digest> all = new LinkedHashMap<>();
      described.forEach(each ->
          all.put(
              each.name(),
              new Digest(
                  each.dtype(), each.shape(), Objects.requireNonNull(byName.get(each.name())))));
      return new TensorDigests(kind, all, samples, bytes, digests.report());
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
