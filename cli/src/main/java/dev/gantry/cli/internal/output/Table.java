// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Prints rows of text under headings. Each column is as wide as its longest cell. Control
/// characters in cells are escaped, so that each row is one line.
public final class Table {
  private final List<List<String>> rows = new ArrayList<>();

  public Table(String... headings) {
    row(headings);
  }

  public void row(String... cells) {
    List<String> row = new ArrayList<>();
    for (String cell : cells) {
      row.add(line(cell));
    }
    rows.add(row);
  }

  /// Escapes the characters of `text` that would begin a new line or control a terminal.
  public static String line(String text) {
    StringBuilder line = new StringBuilder();
    text.chars()
        .forEach(c -> {
          if (Character.isISOControl(c)) {
            line.append(String.format("\\u%04x", c));
          } else {
            line.append((char) c);
          }
        });
    return line.toString();
  }

  /// Prints notes before a table, one on each line.
  public static void printNotes(Map<String, String> notes, PrintWriter out) {
    notes.forEach((key, value) -> out.printf("  %s = %s%n", line(key), line(value)));
  }

  public void print(PrintWriter out) {
    int columns = rows.getFirst().size();
    int[] widths = new int[columns];
    for (List<String> row : rows) {
      for (int i = 0; i < columns; i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    for (List<String> row : rows) {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < columns; i++) {
        String cell = row.get(i);
        line.append(cell).append(" ".repeat(widths[i] - cell.length() + 2));
      }
      out.println(line.toString().stripTrailing());
    }
    out.flush();
  }
}
