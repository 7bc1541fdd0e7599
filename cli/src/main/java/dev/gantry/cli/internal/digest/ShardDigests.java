// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Shape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// The SHA-256 of each field of raw tensor shards: of the values of all samples end to end, however
/// they are cut into shards.
///
/// @param byName lower-case hexadecimal
/// @param transfer how many bytes each transport carried
public record ShardDigests(ShardSet set, Map<String, String> byName, TransferReport transfer)
    implements Report {
  /// What is loaded at a time.
  private static final long PIECE_BYTES = 64L << 20;

  /// Compares all checksums first: a digest is to be of what was written.
  public static ShardDigests of(GantrySession session, ShardSet set, Device device) {
    verify(session, set);
    try (Progress bar = new Progress("digest", bytes(set))) {
      Digests digests = new Digests(session, device, bar);
      return new ShardDigests(set, digests.of(extents(set)), digests.report());
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
          Extent extent = new Extent(shard.file(), shard.offset(i) + done, step);
          pieces.add(new StoredTensor(field.name(), DType.U8, Shape.of(step), extent));
        }
      }
      extents.put(field.name(), pieces);
    }
    return extents;
  }

  /// Of the values, without what lies between fields.
  private static long bytes(ShardSet set) {
    return set.fields().stream().mapToLong(field -> field.sampleBytes() * set.samples()).sum();
  }

  @Override
  public void print(PrintWriter out) {
    Digests.print(byName, out);
  }

  @Override
  public void write(JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeObjectFieldStart("fields");
    for (Field field : set.fields()) {
      Digests.write(field.name(), field.dtype(), field.shape(), byName, json);
    }
    json.writeEndObject();
    json.writeNumberField("samples", set.samples());
    json.writeNumberField("bytes", bytes(set));
    Transfers.writeTransports(transfer, json);
    json.writeEndObject();
  }
}
