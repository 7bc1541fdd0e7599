// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.webdataset.SampleReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;

/// Reports the key of each sample of WebDataset archives, and the SHA-256 of each of its fields.
public final class SampleDigests implements Report {
  private final Spool spool = new Spool();
  private long values;
  private long bytes;

  private SampleDigests() {}

  /// Reads all archives, one after the other.
  public static SampleDigests of(GantrySession session, List<Location> files) {
    SampleDigests result = new SampleDigests();
    return Cleanup.orUndo(
        () -> {
          result.read(session, files);
          return result;
        },
        result::close);
  }

  private void read(GantrySession session, List<Location> files) {
    MessageDigest sha256 = TensorDigests.sha256();
    try (Progress bar = Progress.ofRecords("digest", files)) {
      for (Location file : files) {
        long sample = -1;
        try (SampleReader reader = SampleReader.open(session, file)) {
          for (var next = reader.next(); next.isPresent(); next = reader.next()) {
            SampleReader.Value value = next.get();
            for (MemorySegment part = reader.tar().read();
                part.byteSize() > 0;
                part = reader.tar().read()) {
              sha256.update(part.asByteBuffer());
            }
            add(value, value.sample() != sample, sha256.digest());
            sample = value.sample();
            bytes += value.member().length();
            bar.at(file, value.member().offset(), reader.tar().isCompressed());
          }
        }
      }
    }
  }

  private void add(SampleReader.Value value, boolean isFirst, byte[] digest) {
    spool.add(out -> {
      out.writeBoolean(isFirst);
      out.writeUTF(value.key());
      out.writeUTF(value.field());
      out.write(digest);
    });
    values++;
  }

  /// One field of a sample.
  ///
  /// @param isFirst whether the field is the first of its sample
  private record Entry(boolean isFirst, String key, String field, String sha256) {
    static Entry read(DataInputStream in) throws IOException {
      return new Entry(
          in.readBoolean(),
          in.readUTF(),
          in.readUTF(),
          HexFormat.of().formatHex(in.readNBytes(DigestSpool.DIGEST_BYTES)));
    }
  }

  /// Prints each digest with the name of the field's member.
  @Override
  public void print(PrintWriter out) {
    try {
      DataInputStream in = spool.read();
      for (long i = 0; i < values; i++) {
        Entry entry = Entry.read(in);
        out.println(entry.sha256() + "  " + Table.line(entry.key() + "." + entry.field()));
      }
    } catch (IOException e) {
      throw Spool.failed("read", e);
    }
  }

  @Override
  public Object json() {
    return Json.object().with("samples", (Json.Elements) this::samples).with("bytes", bytes);
  }

  private void samples(Json.Taker taker) throws IOException {
    DataInputStream in = spool.read();
    Optional<Json.JsonObject> fields = Optional.empty();
    String key = "";
    for (long i = 0; i < values; i++) {
      Entry entry = Entry.read(in);
      if (entry.isFirst()) {
        if (fields.isPresent()) {
          taker.take(sample(key, fields.get()));
        }
        fields = Optional.of(Json.object());
      }
      key = entry.key();
      fields.orElseThrow().with(entry.field(), entry.sha256());
    }
    if (fields.isPresent()) {
      taker.take(sample(key, fields.get()));
    }
  }

  private static Json.JsonObject sample(String key, Json.JsonObject fields) {
    return Json.object().with("key", key).with("fields", fields);
  }

  @Override
  public void close() {
    spool.close();
  }
}
