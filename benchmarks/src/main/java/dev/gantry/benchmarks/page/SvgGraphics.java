// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Graphics;
import java.awt.Shape;
import java.awt.geom.AffineTransform;
import java.awt.geom.Line2D;
import java.awt.geom.PathIterator;
import java.awt.geom.Point2D;
import java.awt.geom.Rectangle2D;
import java.util.Locale;

/// Writes what a charting library draws as SVG: text as text, and colours by the names of [Palette].
final class SvgGraphics extends VectorGraphics {
  private final StringBuilder svg;

  SvgGraphics() {
    this(new StringBuilder());
  }

  private SvgGraphics(StringBuilder svg) {
    this.svg = svg;
  }

  /// All that was drawn, for inside an `svg` element.
  String elements() {
    return svg.toString();
  }

  @Override
  public Graphics create() {
    return like(new SvgGraphics(svg));
  }

  @Override
  public void fill(Shape shape) {
    element(shape, "fill:" + Palette.css(getColor()) + opacity("fill-opacity"));
  }

  @Override
  public void draw(Shape shape) {
    StringBuilder style = new StringBuilder("fill:none;stroke:" + Palette.css(getColor()));
    if (getStroke() instanceof BasicStroke stroke) {
      if (stroke.getLineWidth() != 1) {
        style.append(";stroke-width:").append(number(stroke.getLineWidth()));
      }
      if (stroke.getDashArray() != null) {
        style.append(";stroke-dasharray:").append(number(stroke.getDashArray()[0]));
      }
    }
    element(shape, style + opacity("stroke-opacity"));
  }

  private String opacity(String name) {
    double opacity = getColor().getAlpha() / 255.0 * opacity();
    return opacity >= 0.999 ? "" : ";" + name + ":" + number(opacity);
  }

  private void element(Shape shape, String style) {
    Color color = getColor();
    if (color.getAlpha() == 0) {
      return;
    }
    boolean straight = (now().getType() & ~AffineTransform.TYPE_TRANSLATION) == 0;
    double x = now().getTranslateX();
    double y = now().getTranslateY();
    switch (shape) {
      case Rectangle2D box when straight ->
          svg.append("<rect x=\"")
              .append(number(box.getX() + x))
              .append("\" y=\"")
              .append(number(box.getY() + y))
              .append("\" width=\"")
              .append(number(box.getWidth()))
              .append("\" height=\"")
              .append(number(box.getHeight()));
      case Line2D line when straight ->
          svg.append("<line x1=\"")
              .append(number(line.getX1() + x))
              .append("\" y1=\"")
              .append(number(line.getY1() + y))
              .append("\" x2=\"")
              .append(number(line.getX2() + x))
              .append("\" y2=\"")
              .append(number(line.getY2() + y));
      default -> svg.append("<path d=\"").append(path(shape.getPathIterator(now())));
    }
    svg.append("\" style=\"").append(style).append("\"/>\n");
  }

  private static String path(PathIterator path) {
    StringBuilder text = new StringBuilder();
    double[] at = new double[6];
    for (; !path.isDone(); path.next()) {
      int points =
          switch (path.currentSegment(at)) {
            case PathIterator.SEG_MOVETO -> segment(text, 'M', 1);
            case PathIterator.SEG_LINETO -> segment(text, 'L', 1);
            case PathIterator.SEG_QUADTO -> segment(text, 'Q', 2);
            case PathIterator.SEG_CUBICTO -> segment(text, 'C', 3);
            default -> segment(text, 'Z', 0);
          };
      for (int i = 0; i < 2 * points; i++) {
        text.append(i == 0 ? "" : " ").append(number(at[i]));
      }
    }
    return text.toString();
  }

  private static int segment(StringBuilder text, char letter, int points) {
    text.append(letter);
    return points;
  }

  /// Where the reader's font is wider or narrower than [PlainFont] says, the browser adapts it.
  @Override
  public void drawString(String text, float x, float y) {
    PlainFont font = plain(getFont());
    Point2D at = now().transform(new Point2D.Float(x, y), null);
    double angle = Math.toDegrees(Math.atan2(now().getShearY(), now().getScaleX()));
    svg.append("<text x=\"")
        .append(number(at.getX()))
        .append("\" y=\"")
        .append(number(at.getY()))
        .append("\" textLength=\"")
        .append(number(font.width(text)))
        .append("\" lengthAdjust=\"spacingAndGlyphs\"");
    if (Math.abs(angle) > 0.01) {
      svg.append(" transform=\"rotate(")
          .append(number(angle))
          .append(' ')
          .append(number(at.getX()))
          .append(' ')
          .append(number(at.getY()))
          .append(")\"");
    }
    svg.append(" style=\"font-size:")
        .append(font.getSize())
        .append("px;")
        .append(font.isBold() ? "font-weight:bold;" : "")
        .append("fill:")
        .append(Palette.css(getColor()))
        .append(opacity("fill-opacity"))
        .append("\">")
        .append(Markup.text(text))
        .append("</text>\n");
  }

  private static String number(double value) {
    String text = String.format(Locale.ROOT, "%.2f", value);
    return text.replaceAll("\\.?0+$", "").isEmpty() ? "0" : text.replaceAll("\\.?0+$", "");
  }
}
