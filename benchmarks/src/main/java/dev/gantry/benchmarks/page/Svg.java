// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import java.awt.BasicStroke;
import java.awt.Font;
import java.awt.geom.Rectangle2D;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.Axis;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.NumberTickUnit;
import org.jfree.chart.plot.Plot;
import org.jfree.chart.text.TextUtils;
import org.jfree.chart.ui.RectangleInsets;

/// What all charts have in common, and their way from the charting library to SVG.
final class Svg {
  static final PlainFont FONT = new PlainFont(Font.PLAIN, 12);
  static final PlainFont SMALL = new PlainFont(Font.PLAIN, 11);
  static final BasicStroke HAIRLINE = new BasicStroke(1);

  private static final int FEWEST_TICKS = 4;

  static {
    // Else turned text becomes outlines, which need fonts.
    TextUtils.setUseDrawRotatedStringWorkaround(false);
  }

  private Svg() {}

  static void style(Axis axis) {
    axis.setLabelFont(SMALL);
    axis.setLabelPaint(Palette.MUTED.color());
    axis.setTickLabelFont(FONT);
    axis.setTickLabelPaint(Palette.INK.color());
    axis.setAxisLinePaint(Palette.RULE.color());
    axis.setTickMarkPaint(Palette.RULE.color());
    axis.setAxisLineStroke(HAIRLINE);
  }

  /// From 0 to `most`, with few ticks at round numbers.
  static void ticks(NumberAxis axis, double least, double most) {
    double step = Math.pow(10, Math.floor(Math.log10((most - least) / FEWEST_TICKS)));
    for (double factor : new double[] {5, 2}) {
      if (step * factor * FEWEST_TICKS <= most - least) {
        step *= factor;
        break;
      }
    }
    axis.setTickUnit(new NumberTickUnit(step), false, true);
    axis.setTickLabelFont(SMALL);
    axis.setTickLabelPaint(Palette.MUTED.color());
    axis.setRange(least, most);
  }

  /// @param title for readers who do not see the chart
  static String of(Plot plot, String title, int width, int height) {
    plot.setBackgroundPaint(null);
    plot.setOutlineVisible(false);
    plot.setInsets(new RectangleInsets(2, 2, 2, 14));
    JFreeChart chart = new JFreeChart(null, FONT, plot, false);
    chart.setBackgroundPaint(null);
    chart.setPadding(RectangleInsets.ZERO_INSETS);
    SvgGraphics graphics = new SvgGraphics();
    chart.draw(graphics, new Rectangle2D.Double(0, 0, width, height));
    return element(title, width, height, graphics.elements());
  }

  static String element(String title, int width, int height, String elements) {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
        + width
        + ' '
        + height
        + "\" role=\"img\" aria-label=\""
        + Markup.text(title)
        + "\" style=\"max-width:"
        + width
        + "px;font-family:"
        + PlainFont.FAMILY
        + "\">\n"
        + elements
        + "</svg>\n";
  }
}
