// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.output;

import dev.gantry.spark.internal.columns.TableColumns;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/// What Spark writes to, by the class's name: [SaveModes] has looked at the mode before, since Spark
/// knows only two of the four for a source that is a table.
public abstract class OutputSource implements TableProvider {
  /// @param mayReplace whether what was written there before goes
  protected abstract BatchWrite write(LogicalWriteInfo info, boolean mayReplace);

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return new StructType();
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new Output(schema);
  }

  private final class Output implements SupportsWrite {
    private final StructType schema;

    Output(StructType schema) {
      this.schema = schema;
    }

    @Override
    public String name() {
      return OutputSource.this.getClass().getSimpleName();
    }

    @Override
    public Column[] columns() {
      return TableColumns.of(schema);
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(
          TableCapability.BATCH_WRITE, TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new Builder(info);
    }
  }

  private final class Builder implements WriteBuilder, SupportsTruncate {
    private final LogicalWriteInfo info;
    private boolean mayReplace;

    Builder(LogicalWriteInfo info) {
      this.info = info;
    }

    @Override
    public WriteBuilder truncate() {
      mayReplace = true;
      return this;
    }

    @Override
    public Write build() {
      return new Write() {
        @Override
        public BatchWrite toBatch() {
          return write(info, mayReplace);
        }
      };
    }
  }
}
