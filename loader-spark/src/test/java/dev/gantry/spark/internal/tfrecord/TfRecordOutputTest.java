// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.spark.internal.columns.SourceOptions;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TfRecordOutputTest {
  @TempDir Path folder;

  /// A join can give such columns; of two features of one name, readers take the last.
  @Test
  void twoColumnsOfOneNameAreRefused() {
    StructType columns =
        new StructType().add("id", DataTypes.LongType).add("id", DataTypes.FloatType);
    SourceOptions options = new SourceOptions(Map.of("path", folder.toString()));
    assertThatThrownBy(() -> TfRecordOutput.of(columns, options))
        .isInstanceOf(MisuseException.class)
        .hasMessage("two columns have the name 'id'");
  }

  /// The driver may not know of a second attempt of a task, which then writes after the job has
  /// ended.
  @Test
  void aTaskThatOutlivesItsJobWritesNothing() {
    Path set = folder.resolve("set");
    TfRecordOutput output =
        TfRecordOutput.of(
            new StructType().add("id", DataTypes.LongType),
            new SourceOptions(Map.of("path", set.toString())));
    Iterator<InternalRow> rows =
        List.<InternalRow>of(new GenericInternalRow(new Object[] {1L})).iterator();
    assertThatThrownBy(() -> output.write("0", rows))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("since the job has ended");
    assertThat(set).doesNotExist();
  }
}
