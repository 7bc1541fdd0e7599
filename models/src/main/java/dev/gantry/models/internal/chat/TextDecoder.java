// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/// Turns the tokens of an answer into text of whole characters as they arrive. It holds back the
/// text that a later token may still change, and the text that may begin a stop text. Not
/// thread-safe.
public final class TextDecoder {
  /// The character to which a tokenizer decodes bytes of an incomplete character.
  private static final char INCOMPLETE = '\uFFFD';

  private final Function<long[], String> decode;
  private final List<String> stops;

  /// The tokens since the last whole character, and some tokens before them, because the first
  /// word of a decoded text loses its leading blank.
  private long[] tokens = new long[0];

  private int before;
  private final StringBuilder held = new StringBuilder();
  private boolean stopped;

  /// @param stops the texts that end the answer
  public TextDecoder(Function<long[], String> decode, List<String> stops) {
    this.decode = decode;
    this.stops = stops;
  }

  /// Whether the answer has reached a stop text.
  public boolean isStopped() {
    return stopped;
  }

  /// @return the text that no later token can change; may be empty
  public String add(long token) {
    tokens = Arrays.copyOf(tokens, tokens.length + 1);
    tokens[tokens.length - 1] = token;
    String known = decode.apply(Arrays.copyOf(tokens, before));
    String all = decode.apply(tokens);
    if (all.length() <= known.length() || all.charAt(all.length() - 1) == INCOMPLETE) {
      return "";
    }
    tokens = Arrays.copyOfRange(tokens, before, tokens.length);
    before = tokens.length;
    held.append(all, known.length(), all.length());
    return certain();
  }

  /// Returns the text that was held back, after the last token.
  public String end() {
    String known = decode.apply(Arrays.copyOf(tokens, before));
    String all = decode.apply(tokens);
    held.append(all, Math.min(known.length(), all.length()), all.length());
    String certain = certain();
    String rest = stopped ? certain : certain + held;
    held.setLength(0);
    tokens = new long[0];
    before = 0;
    return rest;
  }

  private String certain() {
    int end = stops.stream().mapToInt(held::indexOf).filter(at -> at >= 0).min().orElse(-1);
    if (end >= 0) {
      stopped = true;
    } else {
      end = held.length() - stops.stream().mapToInt(this::begun).max().orElse(0);
    }
    String certain = held.substring(0, end);
    held.delete(0, stopped ? held.length() : end);
    return certain;
  }

  /// Returns how many characters at the end of the text are the beginning of a stop text.
  private int begun(String stop) {
    for (int count = Math.min(stop.length() - 1, held.length()); count > 0; count--) {
      if (stop.startsWith(held.substring(held.length() - count))) {
        return count;
      }
    }
    return 0;
  }
}
