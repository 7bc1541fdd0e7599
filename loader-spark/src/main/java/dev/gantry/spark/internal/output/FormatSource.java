// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.output;

import java.nio.file.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;

/// A data source that Spark knows by its name, reads as a table, and writes by [SaveModes].
public abstract class FormatSource
    implements TableProvider, DataSourceRegister, CreatableRelationProvider {
  private final String name;
  private final Class<? extends OutputSource> output;

  /// @param output that writes it
  protected FormatSource(String name, Class<? extends OutputSource> output) {
    this.name = name;
    this.output = output;
  }

  /// Removes from a folder what a writer of this format left that was ended before its set was whole.
  protected abstract void clear(Path folder);

  @Override
  public final String shortName() {
    return name;
  }

  @Override
  public final boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public final BaseRelation createRelation(
      SQLContext context,
      SaveMode mode,
      scala.collection.immutable.Map<String, String> parameters,
      Dataset<Row> data) {
    return SaveModes.save(context, mode, parameters, data, output, this::clear);
  }
}
