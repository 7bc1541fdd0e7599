// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.http.Redirects;
import dev.gantry.core.internal.http.ServiceAddress;
import dev.gantry.core.internal.store.Variables;
import java.io.IOException;
import java.net.URI;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// An account of Azure Blob Storage, by its REST interface. Requests are signed with the account's
/// key, have a SAS token in their address, or are anonymous.
///
/// @param endpoint the address of the account's blobs, without a slash at its end
/// @param sas a SAS token without `?`; empty for none
/// @param key the key that signs requests; empty for none
record AzureService(URI endpoint, String sas, Optional<AzureKey> key) implements ObjectService {
  private static final String CONNECTION = "AZURE_STORAGE_CONNECTION_STRING";
  private static final String ACCOUNT = "AZURE_STORAGE_ACCOUNT";
  private static final String KEY = "AZURE_STORAGE_KEY";
  private static final String SAS = "AZURE_STORAGE_SAS_TOKEN";
  private static final String ENDPOINT = "AZURE_STORAGE_SERVICE_ENDPOINT";
  private static final String VERSION = "2021-12-02";
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9-]+");
  private static final Pattern TOKEN = Pattern.compile("[A-Za-z0-9%&=._~:+/,-]*");

  /// The format `Mon, 02 Jan 2006 15:04:05 GMT`. The JDK's own format writes days below 10 with
  /// one digit.
  private static final DateTimeFormatter DATE =
      DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ROOT);

  /// @throws MisuseException if a setting is wrong, or no setting names the account
  static AzureService of(Function<String, @Nullable String> variables) {
    Map<String, String> parts = parts(Variables.given(variables, CONNECTION).orElse(""));
    Optional<String> account =
        Optional.ofNullable(parts.get("accountname")).or(() -> Variables.given(variables, ACCOUNT));
    Optional<String> endpoint =
        Optional.ofNullable(parts.get("blobendpoint"))
            .or(() -> Variables.given(variables, ENDPOINT))
            .or(() -> account.map(name -> endpoint(name, parts)));
    if (endpoint.isEmpty()) {
      throw new MisuseException(
          "no storage account: set " + ACCOUNT + " or " + CONNECTION + ", which names one");
    }
    Optional<String> sas =
        Optional.ofNullable(parts.get("sharedaccesssignature"))
            .or(() -> parts.isEmpty() ? Variables.given(variables, SAS) : Optional.empty());
    Optional<String> key =
        Optional.ofNullable(parts.get("accountkey"))
            .or(() -> parts.isEmpty() ? Variables.given(variables, KEY) : Optional.empty())
            .filter(_ -> sas.isEmpty());
    if (key.isPresent() && account.isEmpty()) {
      throw new MisuseException("the storage account's key needs its name: set " + ACCOUNT);
    }
    String token = sas.map(text -> text.replaceFirst("^\\?", "")).orElse("");
    if (!TOKEN.matcher(token).matches()) {
      throw new MisuseException(
          (parts.isEmpty() ? SAS : CONNECTION)
              + " must have the SAS token as a query, as Azure shows it");
    }
    return new AzureService(
        ServiceAddress.of(parts.isEmpty() ? ENDPOINT : CONNECTION, endpoint.get()),
        token,
        key.map(secret -> AzureKey.of(account.get(), secret, parts.isEmpty() ? KEY : CONNECTION)));
  }

  private static String endpoint(String account, Map<String, String> parts) {
    if (!NAME.matcher(account).matches()) {
      throw new MisuseException(
          (parts.containsKey("accountname") ? CONNECTION : ACCOUNT)
              + " must name the storage account by letters, digits and hyphens (was "
              + account
              + ")");
    }
    return parts.getOrDefault("defaultendpointsprotocol", "https")
        + "://"
        + account
        + ".blob."
        + parts.getOrDefault("endpointsuffix", "core.windows.net");
  }

  /// Returns the parts of a connection string, `NAME=VALUE;NAME=VALUE`, by their names in lower
  /// case.
  private static Map<String, String> parts(String connection) {
    Map<String, String> parts = new HashMap<>();
    for (String part : connection.split(";", -1)) {
      int equals = part.indexOf('=');
      if (equals > 0) {
        parts.put(
            part.substring(0, equals).strip().toLowerCase(Locale.ROOT),
            part.substring(equals + 1).strip());
      } else if (!part.isBlank()) {
        throw new MisuseException(CONNECTION + " must be of parts NAME=VALUE with ; between them");
      }
    }
    return parts;
  }

  @Override
  public URI address(ObjectName name) {
    return URI.create(endpoint + name.path() + (sas.isEmpty() ? "" : "?" + sas));
  }

  @Override
  public URI list(ObjectName folder, String after) {
    String query =
        "?restype=container&comp=list&delimiter=%2F&prefix="
            + ObjectName.encoded(folder.key())
            + (after.isEmpty() ? "" : "&marker=" + ObjectName.encoded(after));
    return URI.create(endpoint + "/" + folder.bucket() + query + (sas.isEmpty() ? "" : "&" + sas));
  }

  @Override
  public Page page(String answer) {
    return new Page(
        XmlText.elements(answer, "<Blob><Name>"), XmlText.element(answer, "NextMarker"));
  }

  @Override
  public Map<String, String> of(String method, URI address, String range) throws IOException {
    if (!Redirects.isSameServer(endpoint, address)) {
      return Map.of();
    }
    Map<String, String> headers = new HashMap<>(Map.of("x-ms-version", VERSION));
    if (key.isPresent()) {
      headers.put("x-ms-date", DATE.format(ZonedDateTime.now(ZoneOffset.UTC)));
      headers.put("Authorization", key.get().authorization(method, address, range, headers));
    }
    return headers;
  }

  @Override
  public String advice(int status) {
    return switch (status) {
      // An account without public access answers 409 to an anonymous request.
      case 401, 403, 409 ->
          key.isPresent()
              ? "the account does not accept the key of " + KEY + " or " + CONNECTION
              : sas.isEmpty()
                  ? "this is not open to all: set " + KEY + ", " + SAS + " or " + CONNECTION
                  : "the SAS token has expired, or does not allow this";
      case 404 ->
          key.isEmpty() && sas.isEmpty()
              ? "there is no such blob or container, or it is not open to all"
              : "there is no such blob or container";
      default -> "";
    };
  }

  /// Hides the key and the SAS token.
  @Override
  public String toString() {
    return endpoint.toString();
  }
}
