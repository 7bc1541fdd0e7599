// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Spread;
import java.awt.Font;
import java.awt.Paint;
import java.util.List;
import org.jfree.chart.annotations.XYBoxAnnotation;
import org.jfree.chart.annotations.XYTextAnnotation;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.ui.TextAnchor;

/// GB/s by size of a request and number of threads: the faster, the stronger the colour.
final class HeatMap {
  private static final int WIDTH = 620;
  private static final int ROW = 34;
  private static final int REST = 56;
  private static final double FAINTEST = 0.05;
  private static final double STRONGEST = 0.6;
  private static final double HALF = 0.48;

  private HeatMap() {}

  /// @param cells with a request size and a number of threads each
  static String draw(String title, List<Point> cells) {
    List<Long> sizes = values(cells, Point.REQUEST_BYTES);
    List<Long> threads = values(cells, Point.THREADS);
    SymbolAxis across = axis("threads", threads.stream().map(String::valueOf).toList());
    SymbolAxis down = axis("request", sizes.stream().map(HeatMap::size).toList());
    XYPlot plot = new XYPlot(null, across, down, null);
    plot.setDomainGridlinesVisible(false);
    plot.setRangeGridlinesVisible(false);
    double best = cells.stream().mapToDouble(Point::median).max().orElse(1);
    for (Point cell : cells) {
      double x = threads.indexOf(cell.parameter(Point.THREADS));
      double y = sizes.indexOf(cell.parameter(Point.REQUEST_BYTES));
      double median = cell.median();
      Paint shade = Palette.OURS.color(FAINTEST + (STRONGEST - FAINTEST) * median / best);
      plot.addAnnotation(
          new XYBoxAnnotation(x - HALF, y - HALF, x + HALF, y + HALF, null, null, shade));
      XYTextAnnotation figure = new XYTextAnnotation(Spread.rate(median), x, y);
      figure.setFont(median == best ? new PlainFont(Font.BOLD, 12) : Svg.FONT);
      figure.setPaint(Palette.INK.color());
      figure.setTextAnchor(TextAnchor.CENTER);
      plot.addAnnotation(figure);
    }
    return Svg.of(plot, title, WIDTH, REST + ROW * sizes.size());
  }

  private static SymbolAxis axis(String label, List<String> symbols) {
    SymbolAxis axis = new SymbolAxis(label, symbols.toArray(String[]::new));
    Svg.style(axis);
    axis.setGridBandsVisible(false);
    axis.setTickMarksVisible(false);
    axis.setAxisLineVisible(false);
    axis.setRange(-0.5, symbols.size() - 0.5);
    return axis;
  }

  private static List<Long> values(List<Point> cells, String parameter) {
    return cells.stream().map(cell -> cell.parameter(parameter)).distinct().sorted().toList();
  }

  static String size(long bytes) {
    return bytes < 1 << 20 ? (bytes >> 10) + " KiB" : (bytes >> 20) + " MiB";
  }
}
