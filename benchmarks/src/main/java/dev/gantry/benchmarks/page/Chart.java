// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Spread;
import java.util.List;

/// The data of one chart. `page.js` reads these fields from JSON, and draws them by Chart.js.
public sealed interface Chart {
  /// Colours, which `page.css` defines for light and for dark pages.
  String CEILING = "ceiling";

  String OURS = "ours";
  String PEER = "peer";
  String COPY = "copy";
  String WAIT = "wait";

  /// The chart in words, for readers who do not see it.
  String title();

  /// How many rows there are, one below the other.
  int height();

  /// Horizontal bars.
  ///
  /// @param unit of the values
  /// @param ceiling value of a line across all bars; 0 for none
  record Bars(String title, String unit, double ceiling, List<Bar> bars) implements Chart {
    @Override
    public int height() {
      return bars.size();
    }
  }

  /// One bar as long as the median, with a whisker from the least to the greatest repeat.
  ///
  /// @param figure as a reader shall see it
  record Bar(String label, String color, double least, double median, double most, String figure) {
    Bar(String label, String color, Spread spread, String figure) {
      this(label, color, spread.least(), spread.median(), spread.most(), figure);
    }
  }

  /// A row for each thread or queue, a box for each thing done. Boxes of the colour that comes first lie on top.
  ///
  /// @param rows from the top down
  record Timeline(String title, List<String> rows, List<Box> boxes) implements Chart {
    @Override
    public int height() {
      return rows.size();
    }
  }

  /// @param from in milliseconds
  record Box(String row, String color, double from, double to) {}
}
