// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import dev.gantry.cli.internal.parquet.ParquetRows;
import dev.hardwood.reader.ColumnReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reads the texts in a column of a Parquet file.
final class ParquetTexts implements Documents {
  private final ParquetRows rows;
  private final String column;
  private @Nullable String[] texts = {};
  private int next;

  ParquetTexts(Path file, String column) throws IOException {
    this.column = column;
    rows = new ParquetRows(file);
    try {
      rows.requireText(column);
      rows.select(List.of(column));
    } catch (RuntimeException e) {
      rows.close();
      throw e;
    }
  }

  @Override
  public @Nullable String next() {
    while (next == rows.count()) {
      if (!rows.next()) {
        return null;
      }
      ColumnReader reader = rows.column(column);
      texts = rows.guarded(reader::getStrings);
      next = 0;
    }
    String text = texts[next];
    if (text == null || text.length() > MAX_CHARACTERS) {
      throw rows.malformed(
          "no-text",
          next,
          "'%s' is %s".formatted(column, text == null ? "null" : text.length() + " characters"));
    }
    next++;
    return text;
  }

  @Override
  public void close() throws IOException {
    rows.close();
  }
}
