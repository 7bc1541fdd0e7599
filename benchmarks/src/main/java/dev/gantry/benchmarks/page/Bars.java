// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Spread;
import java.awt.BasicStroke;
import java.awt.Graphics2D;
import java.awt.Paint;
import java.awt.geom.Line2D;
import java.awt.geom.Rectangle2D;
import java.util.List;
import org.jfree.chart.axis.AxisLocation;
import org.jfree.chart.axis.CategoryAxis;
import org.jfree.chart.axis.CategoryLabelPositions;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.plot.PlotOrientation;
import org.jfree.chart.plot.ValueMarker;
import org.jfree.chart.renderer.category.BarRenderer;
import org.jfree.chart.renderer.category.CategoryItemRendererState;
import org.jfree.chart.renderer.category.StandardBarPainter;
import org.jfree.chart.ui.Layer;
import org.jfree.chart.ui.RectangleInsets;
import org.jfree.data.category.CategoryDataset;
import org.jfree.data.category.DefaultCategoryDataset;

/// Bars that lie, one below the other, each with a whisker from the least to the greatest repeat and its
/// figure behind it.
final class Bars {
  private static final int WIDTH = 620;
  private static final int ROW = 26;
  private static final int REST = 50;
  private static final double LABEL_SHARE = 0.42;

  /// Of the axis, for the figures behind the longest bar.
  private static final double ROOM = 1.32;

  private static final int GAP = 6;
  private static final int TIP = 4;

  /// @param figure as a reader shall see it
  record Bar(String label, Palette color, Spread spread, String figure) {}

  private Bars() {}

  /// @param ceiling value of a line across all bars; 0 for none
  static String draw(String title, String unit, List<Bar> bars, double ceiling) {
    DefaultCategoryDataset medians = new DefaultCategoryDataset();
    bars.forEach(bar -> medians.addValue(bar.spread().median(), "median", bar.label()));
    CategoryAxis labels = new CategoryAxis();
    Svg.style(labels);
    labels.setMaximumCategoryLabelWidthRatio((float) LABEL_SHARE);
    labels.setCategoryLabelPositions(CategoryLabelPositions.STANDARD);
    labels.setTickMarksVisible(false);
    labels.setCategoryMargin(0.3);
    labels.setLowerMargin(0.01);
    labels.setUpperMargin(0.01);
    NumberAxis values = new NumberAxis(unit);
    Svg.style(values);
    double most = bars.stream().mapToDouble(bar -> bar.spread().most()).max().orElse(1);
    Svg.ticks(values, 0, Math.max(Math.max(most, ceiling), Double.MIN_NORMAL) * ROOM);
    CategoryPlot plot = new CategoryPlot(medians, labels, values, new Renderer(bars));
    plot.setOrientation(PlotOrientation.HORIZONTAL);
    plot.setRangeAxisLocation(AxisLocation.BOTTOM_OR_RIGHT);
    plot.setRangeGridlinePaint(Palette.RULE.color());
    plot.setRangeGridlineStroke(Svg.HAIRLINE);
    plot.setAxisOffset(RectangleInsets.ZERO_INSETS);
    if (ceiling > 0) {
      ValueMarker line = new ValueMarker(ceiling);
      line.setPaint(Palette.CEILING.color());
      line.setStroke(
          new BasicStroke(
              1.5f, BasicStroke.CAP_BUTT, BasicStroke.JOIN_MITER, 10, new float[] {4}, 0));
      plot.addRangeMarker(line, Layer.BACKGROUND);
    }
    return Svg.of(plot, title, WIDTH, REST + ROW * bars.size());
  }

  private static final class Renderer extends BarRenderer {
    private static final long serialVersionUID = 1;

    private final transient List<Bar> bars;

    Renderer(List<Bar> bars) {
      this.bars = bars;
      setBarPainter(new StandardBarPainter());
      setShadowVisible(false);
      setDrawBarOutline(false);
      setMaximumBarWidth(0.5);
    }

    @Override
    public Paint getItemPaint(int row, int column) {
      return bars.get(column).color().color();
    }

    @Override
    public void drawItem(
        Graphics2D graphics,
        CategoryItemRendererState state,
        Rectangle2D area,
        CategoryPlot plot,
        CategoryAxis labels,
        ValueAxis values,
        CategoryDataset data,
        int row,
        int column,
        int pass) {
      super.drawItem(graphics, state, area, plot, labels, values, data, row, column, pass);
      Bar bar = bars.get(column);
      double least = values.valueToJava2D(bar.spread().least(), area, plot.getRangeAxisEdge());
      double most = values.valueToJava2D(bar.spread().most(), area, plot.getRangeAxisEdge());
      double end = values.valueToJava2D(bar.spread().median(), area, plot.getRangeAxisEdge());
      double middle =
          labels.getCategoryMiddle(column, data.getColumnCount(), area, plot.getDomainAxisEdge());
      graphics.setStroke(Svg.HAIRLINE);
      graphics.setPaint(Palette.INK.color());
      if (most - least >= 1) {
        graphics.draw(new Line2D.Double(least, middle, most, middle));
        graphics.draw(new Line2D.Double(least, middle - TIP, least, middle + TIP));
        graphics.draw(new Line2D.Double(most, middle - TIP, most, middle + TIP));
      }
      graphics.setFont(Svg.FONT);
      graphics.drawString(bar.figure(), (float) Math.max(most, end) + GAP, (float) middle + TIP);
    }
  }
}
