// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.output;

import dev.gantry.core.MisuseException;
import dev.gantry.spark.internal.columns.FormatTable;
import dev.gantry.spark.internal.columns.SourceOptions;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/// A data source that Spark finds by its name. It reads files as a table, and writes them by
/// [SaveModes].
public abstract class FormatSource
    implements TableProvider, DataSourceRegister, CreatableRelationProvider {
  private final String name;
  private final List<String> options;

  /// @param options the names of the options of its reader and its writer
  protected FormatSource(String name, List<String> options) {
    this.name = name;
    this.options = options;
  }

  /// Returns the columns of the existing files.
  protected abstract StructType schema(SourceOptions given);

  /// Refuses columns that cannot be read.
  protected void requireReadable(StructType schema) {}

  /// Reads some columns of the existing files.
  protected abstract Scan scan(StructType columns, SourceOptions given);

  /// Prepares to write a DataFrame of these columns.
  ///
  /// @throws MisuseException if the format cannot store a column
  protected abstract SetOutput<?> output(StructType schema, SourceOptions given);

  @Override
  public final StructType inferSchema(CaseInsensitiveStringMap given) {
    return schema(known(given.asCaseSensitiveMap()));
  }

  /// Spark also calls this before [#createRelation], with the writer's options and the columns of
  /// `partitionBy`.
  @Override
  public final Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> given) {
    if (partitioning.length > 0) {
      throw new MisuseException(
          "partitionBy and clusterBy are not supported by "
              + name
              + ", since a set is one folder (were by "
              + Arrays.toString(partitioning)
              + "): write each part to a folder of its own");
    }
    requireReadable(schema);
    SourceOptions all = known(given);
    return new FormatTable(name + " " + all.path(), schema, columns -> scan(columns, all));
  }

  private SourceOptions known(Map<String, String> given) {
    SourceOptions all = new SourceOptions(given);
    all.requireKnown(name, options);
    return all;
  }

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
    SourceOptions given = new SourceOptions(CollectionConverters.asJava(parameters));
    SaveModes.save(mode, given.path(), data, output(data.schema(), given));
    return new Written(context, data.schema());
  }

  private static final class Written extends BaseRelation {
    private final SQLContext context;
    private final StructType schema;

    Written(SQLContext context, StructType schema) {
      this.context = context;
      this.schema = schema;
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return schema;
    }
  }
}
