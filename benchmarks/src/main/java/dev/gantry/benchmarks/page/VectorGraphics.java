// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import java.awt.AlphaComposite;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Composite;
import java.awt.Font;
import java.awt.FontMetrics;
import java.awt.Graphics2D;
import java.awt.GraphicsConfiguration;
import java.awt.Image;
import java.awt.Paint;
import java.awt.Polygon;
import java.awt.Rectangle;
import java.awt.RenderingHints;
import java.awt.Shape;
import java.awt.Stroke;
import java.awt.font.FontRenderContext;
import java.awt.font.GlyphVector;
import java.awt.geom.AffineTransform;
import java.awt.geom.Arc2D;
import java.awt.geom.Ellipse2D;
import java.awt.geom.Line2D;
import java.awt.geom.RoundRectangle2D;
import java.awt.image.BufferedImage;
import java.awt.image.BufferedImageOp;
import java.awt.image.ImageObserver;
import java.awt.image.RenderedImage;
import java.awt.image.renderable.RenderableImage;
import java.text.AttributedCharacterIterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// What `Graphics2D` asks for besides shapes and text: the state, and all that comes down to a shape.
/// Images are not drawn.
abstract class VectorGraphics extends Graphics2D {
  private final RenderingHints hints = new RenderingHints(Map.of());
  private AffineTransform transform = new AffineTransform();
  private Color color = Color.BLACK;
  private Stroke stroke = new BasicStroke();
  private Font font = new PlainFont(Font.PLAIN, 12);
  private Composite composite = AlphaComposite.SrcOver;
  private @Nullable Shape clip;

  /// Takes over the state of another.
  final <T extends VectorGraphics> T like(T copy) {
    VectorGraphics other = copy;
    other.transform = new AffineTransform(transform);
    other.color = color;
    other.stroke = stroke;
    other.font = font;
    other.composite = composite;
    other.clip = clip;
    return copy;
  }

  final AffineTransform now() {
    return transform;
  }

  @Override
  public final void setPaint(@Nullable Paint paint) {
    if (paint instanceof Color solid) {
      color = solid;
    } else if (paint != null) {
      throw new UnsupportedOperationException("only plain colours are drawn");
    }
  }

  @Override
  public final Paint getPaint() {
    return color;
  }

  @Override
  public final Color getColor() {
    return color;
  }

  @Override
  public final void setColor(@Nullable Color chosen) {
    setPaint(chosen);
  }

  @Override
  public final void setStroke(Stroke chosen) {
    stroke = chosen;
  }

  @Override
  public final Stroke getStroke() {
    return stroke;
  }

  @Override
  public final void setFont(@Nullable Font chosen) {
    if (chosen != null) {
      font = chosen;
    }
  }

  @Override
  public final Font getFont() {
    return font;
  }

  @Override
  public final FontMetrics getFontMetrics(Font asked) {
    return plain(asked).metrics();
  }

  /// The measures of any other font would need fonts.
  final PlainFont plain(Font asked) {
    return asked instanceof PlainFont plain
        ? plain
        : new PlainFont(asked.getStyle(), asked.getSize());
  }

  @Override
  public final FontRenderContext getFontRenderContext() {
    return new FontRenderContext(null, true, true);
  }

  @Override
  public final @Nullable GraphicsConfiguration getDeviceConfiguration() {
    return null;
  }

  @Override
  public final void setComposite(Composite chosen) {
    composite = chosen;
  }

  @Override
  public final Composite getComposite() {
    return composite;
  }

  /// Of the composite, from 0 to 1.
  final float opacity() {
    return composite instanceof AlphaComposite alpha ? alpha.getAlpha() : 1;
  }

  @Override
  public final void setBackground(Color chosen) {}

  @Override
  public final Color getBackground() {
    return Color.WHITE;
  }

  @Override
  public final void setRenderingHint(RenderingHints.Key key, @Nullable Object value) {
    if (value != null) {
      hints.put(key, value);
    }
  }

  @Override
  public final @Nullable Object getRenderingHint(RenderingHints.Key key) {
    return hints.get(key);
  }

  @Override
  public final void setRenderingHints(Map<?, ?> chosen) {
    hints.clear();
    hints.putAll(chosen);
  }

  @Override
  public final void addRenderingHints(Map<?, ?> more) {
    hints.putAll(more);
  }

  @Override
  public final RenderingHints getRenderingHints() {
    return (RenderingHints) hints.clone();
  }

  @Override
  public final void translate(int x, int y) {
    transform.translate(x, y);
  }

  @Override
  public final void translate(double x, double y) {
    transform.translate(x, y);
  }

  @Override
  public final void rotate(double theta) {
    transform.rotate(theta);
  }

  @Override
  public final void rotate(double theta, double x, double y) {
    transform.rotate(theta, x, y);
  }

  @Override
  public final void scale(double x, double y) {
    transform.scale(x, y);
  }

  @Override
  public final void shear(double x, double y) {
    transform.shear(x, y);
  }

  @Override
  public final void transform(AffineTransform more) {
    transform.concatenate(more);
  }

  @Override
  public final void setTransform(AffineTransform chosen) {
    transform = new AffineTransform(chosen);
  }

  @Override
  public final AffineTransform getTransform() {
    return new AffineTransform(transform);
  }

  /// Kept for those who ask; all charts stay inside their own.
  @Override
  public final void clip(@Nullable Shape shape) {
    clip = shape;
  }

  @Override
  public final void setClip(@Nullable Shape shape) {
    clip = shape;
  }

  @Override
  public final void setClip(int x, int y, int width, int height) {
    clip = new Rectangle(x, y, width, height);
  }

  @Override
  public final void clipRect(int x, int y, int width, int height) {
    clip = new Rectangle(x, y, width, height);
  }

  @Override
  public final @Nullable Shape getClip() {
    return clip;
  }

  @Override
  public final @Nullable Rectangle getClipBounds() {
    return clip == null ? null : clip.getBounds();
  }

  @Override
  public final boolean hit(Rectangle rectangle, Shape shape, boolean onStroke) {
    return shape.intersects(rectangle);
  }

  @Override
  public final void setPaintMode() {}

  @Override
  public final void setXORMode(Color other) {}

  @Override
  public final void dispose() {}

  @Override
  public final void drawLine(int x1, int y1, int x2, int y2) {
    draw(new Line2D.Double(x1, y1, x2, y2));
  }

  @Override
  public final void fillRect(int x, int y, int width, int height) {
    fill(new Rectangle(x, y, width, height));
  }

  @Override
  public final void clearRect(int x, int y, int width, int height) {}

  @Override
  public final void drawRoundRect(int x, int y, int width, int height, int arc, int arcHeight) {
    draw(new RoundRectangle2D.Double(x, y, width, height, arc, arcHeight));
  }

  @Override
  public final void fillRoundRect(int x, int y, int width, int height, int arc, int arcHeight) {
    fill(new RoundRectangle2D.Double(x, y, width, height, arc, arcHeight));
  }

  @Override
  public final void drawOval(int x, int y, int width, int height) {
    draw(new Ellipse2D.Double(x, y, width, height));
  }

  @Override
  public final void fillOval(int x, int y, int width, int height) {
    fill(new Ellipse2D.Double(x, y, width, height));
  }

  @Override
  public final void drawArc(int x, int y, int width, int height, int start, int arc) {
    draw(new Arc2D.Double(x, y, width, height, start, arc, Arc2D.OPEN));
  }

  @Override
  public final void fillArc(int x, int y, int width, int height, int start, int arc) {
    fill(new Arc2D.Double(x, y, width, height, start, arc, Arc2D.PIE));
  }

  @Override
  public final void drawPolyline(int[] x, int[] y, int points) {
    for (int i = 1; i < points; i++) {
      drawLine(x[i - 1], y[i - 1], x[i], y[i]);
    }
  }

  @Override
  public final void drawPolygon(int[] x, int[] y, int points) {
    draw(new Polygon(x, y, points));
  }

  @Override
  public final void fillPolygon(int[] x, int[] y, int points) {
    fill(new Polygon(x, y, points));
  }

  @Override
  public final void drawString(String text, int x, int y) {
    drawString(text, (float) x, (float) y);
  }

  @Override
  public final void drawString(AttributedCharacterIterator text, int x, int y) {
    throw noImages();
  }

  @Override
  public final void drawString(AttributedCharacterIterator text, float x, float y) {
    throw noImages();
  }

  @Override
  public final void drawGlyphVector(GlyphVector glyphs, float x, float y) {
    throw noImages();
  }

  @Override
  public final void copyArea(int x, int y, int width, int height, int toX, int toY) {
    throw noImages();
  }

  @Override
  public final boolean drawImage(Image image, AffineTransform how, ImageObserver observer) {
    throw noImages();
  }

  @Override
  public final void drawImage(BufferedImage image, BufferedImageOp operation, int x, int y) {
    throw noImages();
  }

  @Override
  public final void drawRenderedImage(RenderedImage image, AffineTransform how) {
    throw noImages();
  }

  @Override
  public final void drawRenderableImage(RenderableImage image, AffineTransform how) {
    throw noImages();
  }

  @Override
  public final boolean drawImage(Image image, int x, int y, ImageObserver observer) {
    throw noImages();
  }

  @Override
  public final boolean drawImage(
      Image image, int x, int y, int width, int height, ImageObserver observer) {
    throw noImages();
  }

  @Override
  public final boolean drawImage(
      Image image, int x, int y, Color background, ImageObserver observer) {
    throw noImages();
  }

  @Override
  public final boolean drawImage(
      Image image, int x, int y, int width, int height, Color background, ImageObserver observer) {
    throw noImages();
  }

  @Override
  public final boolean drawImage(
      Image image,
      int x1,
      int y1,
      int x2,
      int y2,
      int fromX1,
      int fromY1,
      int fromX2,
      int fromY2,
      ImageObserver observer) {
    throw noImages();
  }

  @Override
  public final boolean drawImage(
      Image image,
      int x1,
      int y1,
      int x2,
      int y2,
      int fromX1,
      int fromY1,
      int fromX2,
      int fromY2,
      Color background,
      ImageObserver observer) {
    throw noImages();
  }

  private static UnsupportedOperationException noImages() {
    return new UnsupportedOperationException("only shapes and plain text are drawn");
  }
}
