// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import java.awt.Font;
import java.awt.FontMetrics;
import java.awt.Graphics;
import java.awt.font.FontRenderContext;
import java.awt.font.LineMetrics;
import java.awt.geom.Rectangle2D;

/// A sans-serif font whose measures are those of Helvetica, whatever fonts the machine has: servers often
/// have none, and Java's own need some even to tell how wide a text is. A browser sets the text in the
/// font that it has.
final class PlainFont extends Font {
  static final String FAMILY = "Helvetica,Arial,'Liberation Sans',sans-serif";

  private static final long serialVersionUID = 1;
  private static final float ASCENT = 0.77f;
  private static final float DESCENT = 0.23f;
  private static final int FIRST = ' ';
  private static final int OTHERS = 600;

  /// Of the characters from the space to the tilde, in thousandths of the size.
  private static final int[] WIDTHS = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584
  };

  PlainFont(int style, int size) {
    super(Font.SANS_SERIF, style, size);
  }

  double width(String text) {
    int sum = 0;
    for (int i = 0; i < text.length(); i++) {
      int at = text.charAt(i) - FIRST;
      sum += at >= 0 && at < WIDTHS.length ? WIDTHS[at] : OTHERS;
    }
    // Bold is a little wider.
    return sum * size * (isBold() ? 1.06 : 1) / 1000;
  }

  @Override
  public LineMetrics getLineMetrics(String text, FontRenderContext context) {
    return new Line(this, text.length());
  }

  @Override
  public Rectangle2D getStringBounds(String text, FontRenderContext context) {
    return new Rectangle2D.Double(0, -ASCENT * size, width(text), (ASCENT + DESCENT) * size);
  }

  FontMetrics metrics() {
    return new Metrics(this);
  }

  private static final class Metrics extends FontMetrics {
    private static final long serialVersionUID = 1;

    Metrics(PlainFont font) {
      super(font);
    }

    private PlainFont plain() {
      return (PlainFont) font;
    }

    @Override
    public int getAscent() {
      return Math.round(ASCENT * font.getSize());
    }

    @Override
    public int getDescent() {
      return Math.round(DESCENT * font.getSize());
    }

    @Override
    public int getHeight() {
      return getAscent() + getDescent();
    }

    @Override
    public int stringWidth(String text) {
      return (int) Math.ceil(plain().width(text));
    }

    @Override
    public int charWidth(char character) {
      return stringWidth(String.valueOf(character));
    }

    @Override
    public int charsWidth(char[] characters, int offset, int length) {
      return stringWidth(new String(characters, offset, length));
    }

    @Override
    public LineMetrics getLineMetrics(String text, Graphics context) {
      return new Line(plain(), text.length());
    }

    @Override
    public Rectangle2D getStringBounds(String text, Graphics context) {
      return plain().getStringBounds(text, new FontRenderContext(null, true, true));
    }
  }

  private static final class Line extends LineMetrics {
    private final PlainFont font;
    private final int characters;

    Line(PlainFont font, int characters) {
      this.font = font;
      this.characters = characters;
    }

    @Override
    public int getNumChars() {
      return characters;
    }

    @Override
    public float getAscent() {
      return ASCENT * font.getSize();
    }

    @Override
    public float getDescent() {
      return DESCENT * font.getSize();
    }

    @Override
    public float getLeading() {
      return 0;
    }

    @Override
    public float getHeight() {
      return getAscent() + getDescent();
    }

    @Override
    public int getBaselineIndex() {
      return Font.ROMAN_BASELINE;
    }

    @Override
    public float[] getBaselineOffsets() {
      return new float[3];
    }

    @Override
    public float getStrikethroughOffset() {
      return -getAscent() / 3;
    }

    @Override
    public float getStrikethroughThickness() {
      return 1;
    }

    @Override
    public float getUnderlineOffset() {
      return 1;
    }

    @Override
    public float getUnderlineThickness() {
      return 1;
    }
  }
}
