// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.core.MisuseException;
import java.util.Comparator;

/// The loads of the largest file, hot and cold, as a picture of its own.
public final class StandaloneChart {
  private static final int WIDTH = 1260;
  private static final int HALF = 640;
  private static final int TITLE = 30;

  private StandaloneChart() {}

  /// @return an SVG document, with the colours of light and dark pages
  public static String of(Result result) {
    Point largest =
        result.points(Group.LOAD).stream()
            .max(Comparator.comparingLong(Point::bytes))
            .orElseThrow(() -> new MisuseException("--chart needs loads, and none was measured"));
    StringBuilder both = new StringBuilder("<style>" + Palette.styleSheet() + "</style>\n");
    int height = 0;
    int at = 0;
    for (Charts.LoadKey key : Charts.loadKeys(result)) {
      if (key.what().equals(largest.what())) {
        String chart = Charts.loads(result, key);
        int own = height(chart);
        height = Math.max(height, own + TITLE);
        both.append("<text x=\"")
            .append(at + 8)
            .append("\" y=\"18\" style=\"font-size:14px;font-weight:bold;fill:var(--ink)\">")
            .append(Markup.text(key.what() + ", " + Page.heat(key.heat())))
            .append("</text>\n")
            .append(
                chart.replaceFirst(
                    "<svg ",
                    "<svg x=\""
                        + at
                        + "\" y=\""
                        + TITLE
                        + "\" width=\"620\" height=\""
                        + own
                        + "\" "));
        at += HALF;
      }
    }
    return Svg.element(
        "Loads of " + largest.what() + ", in GB/s", Math.min(WIDTH, at), height, both.toString());
  }

  private static int height(String chart) {
    String box = chart.substring(chart.indexOf("viewBox=\"") + 9);
    return Integer.parseInt(box.substring(0, box.indexOf('"')).split(" ", -1)[3]);
  }
}
