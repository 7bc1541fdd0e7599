// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.names;

import dev.gantry.core.MisuseException;
import java.math.BigInteger;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A name with captures, such as `layer.{i}.{kind}`. A capture of one letter from `i` to `n`
/// matches a whole number, so that DJL's `01` and the hub's `1` are equal. Any other capture
/// matches text without dots, or, as `{name*}`, text with dots. Immutable.
public final class NamePattern {
  private static final Pattern CAPTURE =
      Pattern.compile("\\{([A-Za-z][A-Za-z0-9]*)(\\*|[+-]\\d{1,9})?}");

  private static final Pattern NUMBER = Pattern.compile("\\{([i-n])\\*?}");

  private final String text;
  private final Set<String> groups = new LinkedHashSet<>();
  private final Pattern pattern;

  /// Returns a pattern that matches only this name; braces in the name are plain characters.
  public static NamePattern literal(String name) {
    return new NamePattern(name, Pattern.compile(Pattern.quote(name), Pattern.DOTALL));
  }

  private NamePattern(String text, Pattern pattern) {
    this.text = text;
    this.pattern = pattern;
  }

  /// @throws MisuseException if a brace is not part of a capture, or if a capture shifts its
  ///     number, which is allowed in a template only
  public NamePattern(String text) {
    this.text = text;
    requireBracesInCaptures(text);
    StringBuilder regex = new StringBuilder();
    Matcher capture = CAPTURE.matcher(text);
    int end = 0;
    while (capture.find()) {
      regex.append(Pattern.quote(text.substring(end, capture.start())));
      regex.append(group(capture.group(1), capture.group(2)));
      end = capture.end();
    }
    regex.append(Pattern.quote(text.substring(end)));
    pattern = Pattern.compile(regex.toString(), Pattern.DOTALL);
  }

  private String group(String name, String suffix) {
    if (suffix != null && !suffix.equals("*")) {
      throw new MisuseException(
          "'%s': only the tensor's side of a rule can shift a number, as {%s%s}"
              .formatted(text, name, suffix));
    }
    if (!groups.add(name)) {
      return "\\k<" + name + ">";
    }
    // Captures have the names of regex groups, since both are letters and digits.
    String what = isNumber(name) ? "\\d+" : suffix == null ? "[^.]+" : ".+";
    return "(?<" + name + ">" + what + ")";
  }

  private static void requireBracesInCaptures(String text) {
    String others = CAPTURE.matcher(text).replaceAll("");
    if (others.contains("{") || others.contains("}")) {
      throw new MisuseException(
          "'" + text + "': a brace must be part of a capture such as {i}, {name} or {name*}");
    }
  }

  private static boolean isNumber(String capture) {
    return capture.length() == 1 && capture.charAt(0) >= 'i' && capture.charAt(0) <= 'n';
  }

  /// Matches a name and returns the value of each capture, numbers without leading zeros; empty if
  /// the name does not match.
  public Optional<Map<String, String>> match(String name) {
    Matcher matcher = pattern.matcher(name);
    if (!matcher.matches()) {
      return Optional.empty();
    }
    Map<String, String> captured = new LinkedHashMap<>();
    for (String group : groups) {
      String value = matcher.group(group);
      captured.put(group, isNumber(group) ? new BigInteger(value).toString() : value);
    }
    return Optional.of(captured);
  }

  public boolean matches(String name) {
    return match(name).isPresent();
  }

  /// Replaces the captures of a template by their values.
  ///
  /// @throws MisuseException if the template has a capture that is not in `captured`
  public static String fill(String template, Map<String, String> captured) {
    return CAPTURE
        .matcher(template)
        .replaceAll(capture -> {
          String value = captured.get(capture.group(1));
          if (value == null) {
            throw unknown(template, capture.group(1));
          }
          String shift = capture.group(2);
          boolean shifts = shift != null && !shift.equals("*");
          return Matcher.quoteReplacement(
              shifts ? new BigInteger(value).add(new BigInteger(shift)).toString() : value);
        });
  }

  /// @throws MisuseException if the template has a capture that this pattern lacks, or shifts a
  ///     capture that is not a number
  public void requireFills(String template) {
    requireBracesInCaptures(template);
    Matcher capture = CAPTURE.matcher(template);
    while (capture.find()) {
      String name = capture.group(1);
      String suffix = capture.group(2);
      if (!groups.contains(name)) {
        throw unknown(template, name);
      }
      if (suffix != null && !suffix.equals("*") && !isNumber(name)) {
        throw new MisuseException(
            "'"
                + template
                + "' shifts {"
                + name
                + "}, which is not a number: numbers are {i} to {n}");
      }
    }
  }

  private static MisuseException unknown(String template, String capture) {
    return new MisuseException(
        "'%s' uses {%s}, which the other side of the rule does not capture"
            .formatted(template, capture));
  }

  /// Returns a hint for an error that this pattern matches none of these names. It explains number
  /// captures if a name would match with text captures in their stead; otherwise it is empty.
  String hint(Collection<String> names) {
    List<String> numbers =
        groups.stream().filter(NamePattern::isNumber).map(name -> "{" + name + "}").toList();
    if (numbers.isEmpty()) {
      return "";
    }
    NamePattern anyText = new NamePattern(NUMBER.matcher(text).replaceAll("{any$1}"));
    return names.stream().noneMatch(anyText::matches)
        ? ""
        : "; "
            + String.join(" and ", numbers)
            + (numbers.size() == 1 ? " stands" : " each stand")
            + " for a whole number; {name} is text without dots, {name*} text with dots";
  }

  /// Returns the pattern as it was written.
  @Override
  public String toString() {
    return text;
  }
}
