// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Reads the texts in an XML answer of an object storage service. Elements with attributes are not
/// found.
public final class XmlText {
  private static final Pattern ESCAPE =
      Pattern.compile("&(?:(lt|gt|quot|apos|amp)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));");

  private XmlText() {}

  /// Returns the text of the first element with a name; empty if there is none.
  public static String element(String xml, String name) {
    return elements(xml, "<" + name + ">").stream().findFirst().orElse("");
  }

  /// Returns the texts that follow a tag, or several tags that are separated only by white space.
  static List<String> elements(String xml, String tags) {
    String between = tags.replace("><", ">\\s*<");
    return Pattern.compile(between + "([^<]*)</")
        .matcher(xml)
        .results()
        .map(found -> unescaped(found.group(1)))
        .toList();
  }

  private static String unescaped(String text) {
    return ESCAPE.matcher(text).replaceAll(one -> Matcher.quoteReplacement(character(one)));
  }

  private static String character(MatchResult escape) {
    if (escape.group(1) == null) {
      int code =
          escape.group(2) == null
              ? Integer.parseInt(escape.group(3), 16)
              : Integer.parseInt(escape.group(2));
      return Character.isValidCodePoint(code) ? Character.toString(code) : "";
    }
    return switch (escape.group(1)) {
      case "lt" -> "<";
      case "gt" -> ">";
      case "quot" -> "\"";
      case "apos" -> "'";
      default -> "&";
    };
  }
}
