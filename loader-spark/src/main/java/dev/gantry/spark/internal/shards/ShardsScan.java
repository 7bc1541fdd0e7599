// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.store.SourceFile.Identity;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.spark.internal.columns.PlannedFile;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/// Reads a set of raw tensor shards. It reads only the columns that a query needs.
final class ShardsScan implements SupportsReportStatistics, Batch {
  private final ShardSet set;
  private final StructType columns;
  private final long partitionBytes;

  /// The index in the set's fields of each column of this scan.
  private final List<Integer> fields = new ArrayList<>();

  ShardsScan(ShardSet set, StructType columns, long partitionBytes) {
    this.set = set;
    this.columns = columns;
    this.partitionBytes = partitionBytes;
    for (StructField column : columns.fields()) {
      fields.add(number(column));
    }
  }

  /// @throws MisuseException if the set lacks a column that the program named, or its type differs
  private int number(StructField column) {
    List<String> names = set.fields().stream().map(Field::name).toList();
    int number = names.indexOf(column.name());
    if (number < 0) {
      throw new MisuseException(
          set.file() + " has no field '" + column.name() + "'; its fields are " + names);
    }
    StructField there = TensorColumn.toRead(set.fields().get(number));
    if (!there.dataType().asNullable().equals(column.dataType().asNullable())) {
      throw new MisuseException(
          "column '"
              + column.name()
              + "' is "
              + there.dataType().catalogString()
              + " (was asked for as "
              + column.dataType().catalogString()
              + ")");
    }
    return number;
  }

  @Override
  public StructType readSchema() {
    return columns;
  }

  @Override
  public String description() {
    return ShardSet.FORMAT + " " + set.file() + " " + columns.catalogString();
  }

  @Override
  public Statistics estimateStatistics() {
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return OptionalLong.of(Math.max(1, sampleBytes()) * set.samples());
      }

      @Override
      public OptionalLong numRows() {
        return OptionalLong.of(set.samples());
      }
    };
  }

  /// Returns the size in bytes of a sample's columns.
  private long sampleBytes() {
    return fields.stream().mapToLong(field -> set.fields().get(field).sampleBytes()).sum();
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  /// Each partition is a range of samples of one shard.
  @Override
  public InputPartition[] planInputPartitions() {
    List<InputPartition> partitions = new ArrayList<>();
    long step = Math.max(1, partitionBytes / Math.max(1, sampleBytes()));
    SampleCatalogue known = set.catalogue();
    for (Shard shard : set.shards()) {
      List<Long> offsets = fields.stream().map(shard::offset).toList();
      Identity seen = Identity.look(shard.file());
      // The file must be the version whose offsets were read when the set was opened.
      known.opened(shard.location(), seen);
      PlannedFile file = PlannedFile.of(shard.file(), seen);
      for (long first = 0; first < shard.samples(); first += step) {
        partitions.add(
            new ShardsReader.Part(file, offsets, first, Math.min(step, shard.samples() - first)));
      }
    }
    return partitions.toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ShardsReader.Factory(
        fields.stream().map(field -> TensorColumn.of(set.fields().get(field))).toList());
  }
}
