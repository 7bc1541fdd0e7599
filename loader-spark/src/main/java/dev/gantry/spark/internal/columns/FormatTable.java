// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import java.util.Arrays;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/// Existing files as a Spark table, which is read in columnar batches.
public abstract class FormatTable implements SupportsRead {
  /// The option that says how many bytes a task reads.
  public static final String PARTITION = "partitionBytes";

  /// The default, the same as for Spark's own file sources.
  private static final long PARTITION_BYTES = 128L << 20;

  protected final StructType schema;
  protected final SourceOptions options;
  private final String format;

  protected FormatTable(String format, StructType schema, SourceOptions options) {
    this.format = format;
    this.schema = schema;
    this.options = options;
  }

  /// How many bytes a task reads.
  protected final long partitionBytes() {
    return options.number(PARTITION, PARTITION_BYTES);
  }

  /// @param columns that a query needs
  protected abstract Scan scan(StructType columns);

  @Override
  public final ScanBuilder newScanBuilder(CaseInsensitiveStringMap read) {
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
      return scan(columns);
    }
  }

  @Override
  public final String name() {
    return format + " " + options.path();
  }

  @Override
  public final Column[] columns() {
    return Arrays.stream(schema.fields())
        .map(field ->
            Column.create(
                field.name(), field.dataType(), field.nullable(), null, field.metadata().json()))
        .toArray(Column[]::new);
  }

  @Override
  public final Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }
}
