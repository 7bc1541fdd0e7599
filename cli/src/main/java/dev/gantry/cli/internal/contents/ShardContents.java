// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import java.io.PrintWriter;

/// Reports the contents of raw tensor shards, without reading their data.
public record ShardContents(ShardSet set) implements Report {
  @Override
  public Object json() {
    return Json.object()
        .with("format", ShardSet.FORMAT)
        .with(
            "fields",
            Json.byName(
                set.fields(),
                Field::name,
                field ->
                    Json.object().with("dtype", field.dtype().name()).with("shape", field.shape())))
        .with("samples", set.samples())
        .with("bytes", set.totalBytes())
        .with("blockBytes", set.blockBytes())
        .with("shards", set.shards().stream().map(ShardContents::json).toList())
        .with("metadata", set.metadata());
  }

  private static Object json(Shard shard) {
    return Json.object()
        .with("file", shard.location())
        .with("samples", shard.samples())
        .with("bytes", shard.bytes());
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
