// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import java.util.Arrays;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/// Existing files as a Spark table, of which a query reads some columns.
public final class FormatTable implements SupportsRead {
  /// The option that says how many bytes a task reads.
  public static final String PARTITION = "partitionBytes";

  /// The default, the same as for Spark's own file sources.
  private static final long PARTITION_BYTES = 128L << 20;

  private final String name;
  private final StructType schema;
  private final Function<StructType, Scan> scan;

  /// @param scan reads the columns that a query needs
  public FormatTable(String name, StructType schema, Function<StructType, Scan> scan) {
    this.name = name;
    this.schema = schema;
    this.scan = scan;
  }

  /// How many bytes a task reads.
  public static long partitionBytes(SourceOptions options) {
    return options.number(PARTITION, PARTITION_BYTES);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap read) {
    return new Builder();
  }

  private final class Builder implements SupportsPushDownRequiredColumns {
    private StructType columns = schema;

    @Override
    public void pruneColumns(StructType required) {
      columns = required;
    }

    @Override
    public Scan build() {
      return scan.apply(columns);
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Column[] columns() {
    return Arrays.stream(schema.fields())
        .map(field ->
            Column.create(
                field.name(), field.dataType(), field.nullable(), null, field.metadata().json()))
        .toArray(Column[]::new);
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }
}
