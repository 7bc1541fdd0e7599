// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Puts parentheses around the operand of each `not`. In Python that is a whole comparison or
/// test, in Jinjava only the next value.
final class Negations {
  private static final Pattern TAG = Pattern.compile("\\{%.*?%}|\\{\\{.*?}}", Pattern.DOTALL);

  /// Matches strings, the `not` of `is not` and `not in`, which belong to a test, and whatever
  /// begins or ends an operand of `not`.
  private static final Pattern TOKEN =
      Pattern.compile(
          "'(?:\\\\.|[^'\\\\])*'|\"(?:\\\\.|[^\"\\\\])*\"|\\bis\\s+not\\b|\\bnot\\s+in\\b"
              + "|\\b(?:not|and|or|if|else)\\b|[-+]?%}|-?}}|[(\\[{}\\]),]",
          Pattern.DOTALL);

  private Negations() {}

  static String bracketed(String template) {
    return TAG.matcher(template)
        .replaceAll(tag ->
            Matcher.quoteReplacement(
                tag.group().contains("not") ? inTag(tag.group()) : tag.group()));
  }

  private static String inTag(String tag) {
    StringBuilder written = new StringBuilder(tag.substring(0, 2));
    Matcher token = TOKEN.matcher(tag);
    // For each `not` whose operand has not ended, the nesting depth of parentheses at which it
    // stands.
    Deque<Integer> open = new ArrayDeque<>();
    int depth = 0;
    int from = 2;
    while (token.find(from)) {
      written.append(tag, from, token.start());
      from = token.end();
      String found = token.group();
      switch (found) {
        case "not" -> open.push(depth);
        case "and", "or", "if", "else", "," -> close(open, depth, written);
        case "(", "[", "{" -> depth++;
        case ")", "]", "}" -> close(open, depth--, written);
        default -> {
          if (found.endsWith("}")) {
            close(open, 0, written);
          }
        }
      }
      written.append(found).append(found.equals("not") ? " (" : "");
    }
    return written.append(tag.substring(from)).toString();
  }

  /// Closes the operands that began at this depth or deeper.
  private static void close(Deque<Integer> open, int depth, StringBuilder written) {
    while (!open.isEmpty() && open.peek() >= depth) {
      open.pop();
      written.append(')');
    }
  }
}
