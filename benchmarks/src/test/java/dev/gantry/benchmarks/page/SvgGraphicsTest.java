// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.geom.Ellipse2D;
import org.junit.jupiter.api.Test;

/// Shapes, text and state as SVG.
class SvgGraphicsTest {
  private final SvgGraphics graphics = new SvgGraphics();

  @Test
  void rectanglesAndLinesStaySuchWhereTheyAreMoved() {
    graphics.setPaint(Palette.OURS.color());
    graphics.translate(10, 20);
    graphics.fillRect(1, 2, 3, 4);
    graphics.setStroke(new BasicStroke(2.5f));
    graphics.drawLine(0, 0, 5, 5);

    assertThat(graphics.elements())
        .isEqualTo(
            """
            <rect x="11" y="22" width="3" height="4" style="fill:var(--ours)"/>
            <line x1="10" y1="20" x2="15" y2="25" style="fill:none;stroke:var(--ours);stroke-width:2.5"/>
            """);
  }

  @Test
  void otherShapesArePaths() {
    graphics.setPaint(Palette.PEER.color(0.5));
    graphics.fill(new Ellipse2D.Double(0, 0, 10, 10));

    assertThat(graphics.elements())
        .startsWith("<path d=\"M10 5C")
        .contains("Z\" style=\"fill:var(--peer);fill-opacity:0.5\"/>");
  }

  @Test
  void textIsTextAndTurnsAboutItsBeginning() {
    graphics.setPaint(Palette.INK.color());
    graphics.rotate(-Math.PI / 2, 7, 8);
    graphics.drawString("a < b", 7, 8);

    assertThat(graphics.elements())
        .contains("x=\"7\" y=\"8\"", "rotate(-90 7 8)", ">a &lt; b</text>", "font-size:12px");
  }

  @Test
  void copiesDrawOnTheSamePictureWithAStateOfTheirOwn() {
    graphics.setPaint(Palette.INK.color());
    Graphics2D copy = (Graphics2D) graphics.create();
    copy.setPaint(Palette.WAIT.color());
    copy.translate(100, 0);
    copy.fillRect(0, 0, 1, 1);
    graphics.fillRect(0, 0, 1, 1);

    assertThat(graphics.elements())
        .contains("x=\"100\"", "var(--wait)")
        .contains("x=\"0\" y=\"0\" width=\"1\" height=\"1\" style=\"fill:var(--ink)\"");
  }

  @Test
  void coloursOutsideThePaletteAreRefused() {
    graphics.setPaint(Color.MAGENTA);
    assertThatThrownBy(() -> graphics.fillRect(0, 0, 1, 1))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void widthsAreThoseOfHelvetica() {
    PlainFont font = new PlainFont(java.awt.Font.PLAIN, 10);
    assertThat(font.width("Ag 1")).isEqualTo((667 + 556 + 278 + 556) / 100.0);
    assertThat(graphics.getFontMetrics(font).stringWidth("Ag 1")).isEqualTo(21);
  }
}
