// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

/// Text for HTML and SVG.
final class Markup {
  private Markup() {}

  /// For the inside of an element or of an attribute in double quotes.
  static String text(String text) {
    StringBuilder markup = new StringBuilder();
    text.codePoints()
        .forEach(point -> {
          switch (point) {
            case '&' -> markup.append("&amp;");
            case '<' -> markup.append("&lt;");
            case '>' -> markup.append("&gt;");
            case '"' -> markup.append("&quot;");
            default -> markup.appendCodePoint(point < ' ' ? ' ' : point);
          }
        });
    return markup.toString();
  }

  /// JSON as the inside of a `script` element: no tag can end it, and XML reads it as HTML does.
  static String script(String json) {
    return json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e");
  }
}
