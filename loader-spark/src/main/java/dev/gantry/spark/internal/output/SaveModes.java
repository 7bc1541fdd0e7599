// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.output;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.spark.internal.columns.SourceOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/// What a program's `mode(…)` means for a folder.
public final class SaveModes {
  /// What our own writers' unfinished work and locks begin with.
  private static final String OURS = ".gantry";

  private SaveModes() {}

  /// Writes a DataFrame, or does nothing where the mode says so.
  ///
  /// @param output that writes it
  /// @param clear removes from a folder what an earlier writer left unfinished
  /// @throws MisuseException if the folder is not empty and the mode is the usual one, or the mode is
  ///     `append`
  public static BaseRelation save(
      SQLContext context,
      SaveMode mode,
      scala.collection.immutable.Map<String, String> parameters,
      Dataset<Row> data,
      Class<? extends OutputSource> output,
      Consumer<Path> clear) {
    Map<String, String> options = CollectionConverters.asJava(parameters);
    Path folder = new SourceOptions(options).path();
    if (Files.isDirectory(JointFiles.unfinished(folder), LinkOption.NOFOLLOW_LINKS)) {
      // Otherwise files that a crash left would be taken for those of others.
      clear.accept(folder);
    }
    switch (mode) {
      case ErrorIfExists -> {
        if (!isEmpty(folder)) {
          throw new MisuseException(
              folder + " is not empty: name another place, or mode(\"overwrite\")");
        }
        write(data, options, output, SaveMode.Append);
      }
      case Ignore -> {
        if (isEmpty(folder)) {
          write(data, options, output, SaveMode.Append);
        }
      }
      case Overwrite -> write(data, options, output, SaveMode.Overwrite);
      case Append ->
          throw new MisuseException(
              "mode(\"append\") is not supported, since a set of files is not changed: write to a"
                  + " folder beside "
                  + folder);
    }
    return new Written(context, data.schema());
  }

  private static void write(
      Dataset<Row> data,
      Map<String, String> options,
      Class<? extends OutputSource> output,
      SaveMode mode) {
    data.write().format(output.getName()).options(options).mode(mode).save();
  }

  private static boolean isEmpty(Path folder) {
    if (!Files.exists(folder)) {
      return true;
    }
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.allMatch(entry -> String.valueOf(entry.getFileName()).startsWith(OURS));
    } catch (IOException e) {
      throw FileErrors.of("list", folder.toString(), e);
    }
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
