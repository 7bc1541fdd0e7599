// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.output;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.internal.files.JointFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;

/// Applies the save mode, which a program sets by `mode(…)`, to a folder.
final class SaveModes {
  /// The start of the names of Gantry's own unfinished work and locks.
  private static final String OURS = ".gantry";

  private SaveModes() {}

  /// Writes a DataFrame, or does nothing if the mode says so.
  ///
  /// @throws MisuseException if the folder is not empty and the mode is Spark's default, or if the
  ///     mode is `append`
  static <P> void save(SaveMode mode, Path folder, Dataset<Row> data, SetOutput<P> output) {
    if (Files.isDirectory(JointFiles.unfinished(folder), LinkOption.NOFOLLOW_LINKS)) {
      // This removes the files of a crashed writer, which would otherwise be taken for another
      // program's.
      output.begin(true).close();
    }
    switch (mode) {
      case ErrorIfExists -> {
        if (!isEmpty(folder)) {
          throw new MisuseException(
              folder + " is not empty: name another place, or mode(\"overwrite\")");
        }
        write(data, output, false);
      }
      case Ignore -> {
        if (isEmpty(folder)) {
          write(data, output, false);
        }
      }
      case Overwrite -> write(data, output, true);
      case Append ->
          throw new MisuseException(
              "mode(\"append\") is not supported, since a set of files is not changed: write to a"
                  + " folder beside "
                  + folder);
    }
  }

  /// Writes the set. The driver gets the result of one attempt of each task. The files of other
  /// attempts are removed when the set is finished.
  private static <P> void write(Dataset<Row> data, SetOutput<P> output, boolean mayReplace) {
    String job = UUID.randomUUID().toString();
    try (SetOutput.Begun<P> set = output.begin(mayReplace)) {
      List<P> parts =
          data.queryExecution()
              .toRdd()
              .toJavaRDD()
              .mapPartitionsWithIndex(
                  (partition, rows) -> {
                    if (!rows.hasNext()) {
                      return Collections.emptyIterator();
                    }
                    long attempt = TaskContext.get().taskAttemptId();
                    String part = job + "-" + partition + "-" + attempt;
                    return List.of(output.write(part, rows)).iterator();
                  },
                  true)
              .collect();
      set.finish(parts);
    }
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
}
