// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import java.io.IOException;
import java.io.PrintWriter;

/// What is in raw tensor shards, without their data.
public record ShardContents(ShardSet set) implements Report {
  @Override
  public void write(JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeStringField("format", ShardSet.FORMAT);
    json.writeObjectFieldStart("fields");
    for (Field field : set.fields()) {
      json.writeObjectFieldStart(field.name());
      json.writeStringField("dtype", field.dtype().name());
      Json.writeShape(field.shape(), json);
      json.writeEndObject();
    }
    json.writeEndObject();
    json.writeNumberField("samples", set.samples());
    json.writeNumberField("bytes", set.totalBytes());
    json.writeNumberField("blockBytes", set.blockBytes());
    json.writeArrayFieldStart("shards");
    for (Shard shard : set.shards()) {
      json.writeStartObject();
      json.writeStringField("file", shard.location().toString());
      json.writeNumberField("samples", shard.samples());
      json.writeNumberField("bytes", shard.bytes());
      json.writeEndObject();
    }
    json.writeEndArray();
    Json.writeMetadata(set.metadata(), json);
    json.writeEndObject();
  }

  @Override
  public void print(PrintWriter out) {
    out.printf(
        "raw tensor shards, %,d file(s), %,d samples, %,d bytes; a checksum each %,d bytes%n",
        set.shards().size(), set.samples(), set.totalBytes(), set.blockBytes());
    Table.printNotes(set.metadata(), out);
    Table fields = new Table("field", "dtype", "shape", "bytes a sample");
    for (Field field : set.fields()) {
      fields.row(
          field.name(),
          field.dtype().name(),
          field.shape().toString(),
          Long.toString(field.sampleBytes()));
    }
    fields.print(out);
    out.println();
    Table shards = new Table("shard", "samples", "bytes");
    for (Shard shard : set.shards()) {
      shards.row(
          shard.location().fileName(),
          Long.toString(shard.samples()),
          Long.toString(shard.bytes()));
    }
    shards.print(out);
  }
}
