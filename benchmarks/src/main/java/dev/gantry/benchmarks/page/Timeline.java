// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import java.util.List;
import org.jfree.chart.annotations.XYBoxAnnotation;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.XYPlot;

/// What went on when: a row for each thread or queue, a box for each thing done.
public final class Timeline {
  private static final int WIDTH = 1280;
  private static final int ROW = 26;
  private static final int REST = 48;
  private static final double HALF = 0.36;

  /// Kinds of boxes.
  public enum Kind {
    READ(Palette.OURS),
    COPY(Palette.COPY),
    KERNEL(Palette.PEER),
    WAIT(Palette.WAIT);

    final Palette color;

    Kind(Palette color) {
      this.color = color;
    }
  }

  /// @param from in milliseconds
  public record Box(String row, Kind kind, double from, double to) {}

  private Timeline() {}

  /// As [#draw], for a file of its own.
  public static String drawAlone(String title, List<String> rows, List<Box> boxes) {
    return draw(title, rows, boxes)
        .replaceFirst("\n", "\n<style>" + Palette.styleSheet() + "</style>\n");
  }

  /// @param rows from the top down
  static String draw(String title, List<String> rows, List<Box> boxes) {
    List<String> upwards = rows.reversed();
    SymbolAxis names = new SymbolAxis(null, upwards.toArray(String[]::new));
    Svg.style(names);
    names.setGridBandsVisible(false);
    names.setTickMarksVisible(false);
    names.setRange(-0.5, rows.size() - 0.5);
    NumberAxis time = new NumberAxis("ms");
    Svg.style(time);
    double first = boxes.stream().mapToDouble(Box::from).min().orElse(0);
    double end = boxes.stream().mapToDouble(Box::to).max().orElse(1);
    Svg.ticks(time, Math.min(0, first), end + Math.max(end - first, Double.MIN_NORMAL) * 0.01);
    XYPlot plot = new XYPlot(null, time, names, null);
    plot.setDomainGridlinePaint(Palette.RULE.color());
    plot.setDomainGridlineStroke(Svg.HAIRLINE);
    plot.setRangeGridlinesVisible(false);
    for (Box box : boxes) {
      int row = upwards.indexOf(box.row());
      plot.addAnnotation(
          new XYBoxAnnotation(
              box.from(),
              row - HALF,
              Math.max(box.to(), box.from() + (end - first) / WIDTH / 2),
              row + HALF,
              null,
              null,
              box.kind().color.color(box.kind() == Kind.WAIT ? 0.55 : 0.85)),
          false);
    }
    return Svg.of(plot, title, WIDTH, REST + ROW * rows.size());
  }
}
