// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.MisuseException;
import java.net.URI;
import java.net.http.HttpHeaders;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Pattern;

/// Reads and checks values of headers: a server may send any text, and a user's settings may hold
/// text that a header cannot carry.
public final class HeaderValues {
  private static final Pattern COUNT = Pattern.compile("\\d{1,18}");

  private static final Pattern WORD = Pattern.compile("[!-~]+");

  private HeaderValues() {}

  /// Returns a token that a header can carry. A message never shows it.
  ///
  /// @param source the setting that has the token, for the message
  /// @throws MisuseException if a header cannot carry the token
  public static String token(String secret, String source) {
    return word(secret, source, "the token");
  }

  /// Returns a value that a header can carry. A message never shows it.
  ///
  /// @param source the setting that has the value, for the message
  /// @param noun what the value is, for the message
  /// @throws MisuseException if a header cannot carry the value
  public static String word(String value, String source, String noun) {
    if (!WORD.matcher(value).matches()) {
      throw new MisuseException(source + " must have one word of ASCII characters, " + noun);
    }
    return value;
  }

  static boolean isCount(String value) {
    return COUNT.matcher(value).matches();
  }

  /// Returns the count of bytes in a header; empty if the header is missing, or its value is not
  /// such a number.
  public static OptionalLong count(HttpHeaders headers, String name) {
    return headers
        .firstValue(name)
        .filter(HeaderValues::isCount)
        .map(value -> OptionalLong.of(Long.parseLong(value)))
        .orElseGet(OptionalLong::empty);
  }

  /// Resolves an address that an answer names; empty if the text is not an address.
  public static Optional<URI> address(URI from, String value) {
    try {
      return Optional.of(from.resolve(value));
    } catch (IllegalArgumentException _) {
      return Optional.empty();
    }
  }
}
