// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import java.awt.Color;
import java.util.Locale;

/// The colours of charts, which a style sheet defines for light and for dark pages. To the charting
/// library each is a colour like any other; what is written is its name.
enum Palette {
  INK("#1b1f24", "#e6e9ec"),
  MUTED("#667079", "#9aa4ad"),
  RULE("#d8dde2", "#3a4149"),
  CEILING("#a3abb3", "#6d7680"),
  OURS("#2f6db5", "#5b9be6"),
  PEER("#d9822b", "#e39a4f"),
  COPY("#2a9d6f", "#43bf8d"),
  WAIT("#d9c24a", "#b39f35");

  private final String light;
  private final String dark;

  Palette(String light, String dark) {
    this.light = light;
    this.dark = dark;
  }

  Color color() {
    return Color.decode(light);
  }

  /// @param share of opacity
  Color color(double share) {
    Color solid = color();
    return new Color(
        solid.getRed(), solid.getGreen(), solid.getBlue(), (int) Math.round(255 * share));
  }

  private String variable() {
    return "--" + name().toLowerCase(Locale.ROOT);
  }

  /// How CSS names a colour of this palette.
  static String css(Color color) {
    for (Palette one : values()) {
      if ((one.color().getRGB() & 0xffffff) == (color.getRGB() & 0xffffff)) {
        return "var(" + one.variable() + ")";
      }
    }
    throw new IllegalArgumentException("the palette has no " + color);
  }

  /// The definitions of all, for light and for dark.
  static String styleSheet() {
    StringBuilder light = new StringBuilder();
    StringBuilder dark = new StringBuilder();
    for (Palette one : values()) {
      light.append(one.variable()).append(':').append(one.light).append(';');
      dark.append(one.variable()).append(':').append(one.dark).append(';');
    }
    return ":root{color-scheme:light dark;"
        + light
        + "}\n@media(prefers-color-scheme:dark){:root{"
        + dark
        + "}}\n";
  }
}
