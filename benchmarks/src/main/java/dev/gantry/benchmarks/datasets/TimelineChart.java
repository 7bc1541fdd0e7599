// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import java.awt.BasicStroke;
import java.awt.Color;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.knowm.xchart.AnnotationText;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.markers.SeriesMarkers;

/// Draws what [OverlapBench] saw: `TimelineChart CSV PNG TITLE`. When batches were read, one line
/// for the even ones and one for the odd, above the kernels that used them.
public final class TimelineChart {
  /// Where the loop has found its pace.
  private static final int FIRST_BATCH = 100;

  private static final int BATCHES = 14;
  private static final int BAR_PIXELS = 22;

  /// From the left to a label's middle.
  private static final double LABEL_MILLIS = 0.8;

  private static final Color EVEN = new Color(0x2F6DB5);
  private static final Color ODD = new Color(0xE08A2E);

  private TimelineChart() {}

  /// From `begin` to `end`, in milliseconds.
  private record Bar(double begin, double end) {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length < 3) {
      System.err.println("usage: TimelineChart CSV PNG TITLE");
      System.exit(64);
    }
    List<String> lines = Files.readAllLines(Path.of(arguments[0]));
    List<double[]> steps =
        lines.subList(1 + FIRST_BATCH, 1 + FIRST_BATCH + BATCHES).stream()
            .map(TimelineChart::numbers)
            .toList();
    XYChart chart =
        new XYChartBuilder()
            .width(1200)
            .height(320)
            .title(arguments[2])
            .xAxisTitle("ms from the loop's start")
            .theme(Styler.ChartTheme.Matlab)
            .build();
    for (int parity = 0; parity < 2; parity++) {
      List<Bar> reads = new ArrayList<>();
      List<Bar> kernels = new ArrayList<>();
      for (int i = parity; i < BATCHES; i += 2) {
        double[] step = steps.get(i);
        reads.add(new Bar(step[1], step[2]));
        kernels.add(new Bar(step[3], step[4]));
      }
      String which = parity == 0 ? "even batches" : "odd batches";
      draw(chart, "reading " + which, reads, 3 - parity, parity == 0 ? EVEN : ODD);
      draw(chart, "kernels of " + which, kernels, 1, parity == 0 ? EVEN : ODD);
    }
    chart.getStyler().setYAxisMin(0.5).setYAxisMax(3.5).setLegendVisible(false);
    chart.getStyler().setPlotGridHorizontalLinesVisible(false).setYAxisTicksVisible(false);
    double left = steps.getFirst()[1];
    label(chart, "reading even batches", left, 3);
    label(chart, "reading odd batches", left, 2);
    label(chart, "kernels", left, 1);
    BitmapEncoder.saveBitmap(chart, arguments[1], BitmapEncoder.BitmapFormat.PNG);
  }

  private static void label(XYChart chart, String text, double left, double row) {
    chart.addAnnotation(new AnnotationText(text, left + LABEL_MILLIS, row + 0.3, false));
  }

  private static double[] numbers(String line) {
    String[] parts = line.split(",", -1);
    double[] numbers = new double[parts.length];
    for (int i = 0; i < parts.length; i++) {
      numbers[i] = Double.parseDouble(parts[i]);
    }
    return numbers;
  }

  private static void draw(XYChart chart, String name, List<Bar> bars, double row, Color color) {
    for (int i = 0; i < bars.size(); i++) {
      Bar bar = bars.get(i);
      XYSeries series =
          chart.addSeries(
              name + " " + i, new double[] {bar.begin(), bar.end()}, new double[] {row, row});
      series.setMarker(SeriesMarkers.NONE);
      series.setLineColor(color);
      series.setLineStyle(
          new BasicStroke(BAR_PIXELS, BasicStroke.CAP_BUTT, BasicStroke.JOIN_MITER));
    }
  }
}
