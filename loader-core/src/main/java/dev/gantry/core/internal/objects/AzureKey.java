// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.MisuseException;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Base64;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/// The key of a storage account, which signs requests without a body by Azure's scheme `SharedKey`.
final class AzureKey {
  private static final String ALGORITHM = "HmacSHA256";

  private final String account;
  private final SecretKeySpec secret;

  private AzureKey(String account, SecretKeySpec secret) {
    this.account = account;
    this.secret = secret;
  }

  /// @param text the key in Base64
  /// @param setting the setting that has the key, for messages
  /// @throws MisuseException if the text is not Base64
  static AzureKey of(String account, String text, String setting) {
    try {
      return new AzureKey(account, new SecretKeySpec(Base64.getDecoder().decode(text), ALGORITHM));
    } catch (IllegalArgumentException _) {
      throw new MisuseException(setting + " must have the account's key in Base64");
    }
  }

  /// Returns the value of the header `Authorization`.
  ///
  /// @param range the value of the header `Range`; empty if the request has none
  /// @param headers the other headers, of which the headers that begin with `x-ms-` are signed,
  ///     too
  String authorization(String method, URI address, String range, Map<String, String> headers) {
    // The lines between method and range are for Content-Encoding, -Language, -Length, -MD5 and
    // -Type, Date, and four conditions. They are empty, since none of these headers is sent.
    StringBuilder text =
        new StringBuilder(method).append("\n".repeat(11)).append(range).append('\n');
    new TreeMap<>(headers)
        .forEach((name, value) -> {
          if (name.startsWith("x-ms-")) {
            text.append(name).append(':').append(value).append('\n');
          }
        });
    text.append('/').append(account).append(address.getRawPath());
    parameters(address)
        .forEach((name, value) -> text.append('\n').append(name).append(':').append(value));
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(secret);
      byte[] signature = mac.doFinal(text.toString().getBytes(StandardCharsets.UTF_8));
      return "SharedKey " + account + ":" + Base64.getEncoder().encodeToString(signature);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has " + ALGORITHM, e);
    }
  }

  /// Returns the parameters of an address, which has each parameter once.
  private static SortedMap<String, String> parameters(URI address) {
    SortedMap<String, String> parameters = new TreeMap<>();
    String query = address.getRawQuery();
    for (String part : query == null ? new String[0] : query.split("&", -1)) {
      String[] sides = part.split("=", 2);
      parameters.put(
          decoded(sides[0]).toLowerCase(Locale.ROOT), sides.length == 1 ? "" : decoded(sides[1]));
    }
    return parameters;
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text, StandardCharsets.UTF_8);
  }
}
