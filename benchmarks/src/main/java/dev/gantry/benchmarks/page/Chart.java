// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Spread;
import java.util.List;

/// The data of one chart. `page.js` reads these fields from JSON, and draws them with Chart.js.
public sealed interface Chart {
  /// The names of colours, which `page.css` defines for light and for dark pages.
  String CEILING = "ceiling";

  String OURS = "ours";
  String PEER = "peer";
  String COPY = "copy";
  String WAIT = "wait";

  /// The description of the chart for readers who do not see it.
  String title();

  /// The number of rows of the chart.
  int height();

  /// A chart of horizontal bars.
  ///
  /// @param unit the unit of the values
  /// @param ceiling the value at which a line crosses all bars; 0 for no line
  record Bars(String title, String unit, double ceiling, List<Bar> bars) implements Chart {
    @Override
    public int height() {
      return bars.size();
    }
  }

  /// One bar as long as the median, with a whisker from the least to the greatest repeat.
  ///
  /// @param figure the text behind the bar
  record Bar(String label, String color, double least, double median, double most, String figure) {
    Bar(String label, String color, Spread spread, String figure) {
      this(label, color, spread.least(), spread.median(), spread.most(), figure);
    }
  }

  /// A chart with a row for each thread or queue, and a box for each activity. Boxes of the first
  /// colour cover the others.
  ///
  /// @param rows the names of the rows from top to bottom
  record Timeline(String title, List<String> rows, List<Box> boxes) implements Chart {
    @Override
    public int height() {
      return rows.size();
    }
  }

  /// @param from the start in milliseconds
  /// @param to the end in milliseconds
  record Box(String row, String color, double from, double to) {}
}
