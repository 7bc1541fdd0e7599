// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.internal.http.HeaderValues;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.http.Redirects;
import dev.gantry.core.internal.http.ServiceAddress;
import dev.gantry.core.internal.store.Variables;
import java.io.IOException;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Google Cloud Storage, by its XML interface. Requests have the token in a variable, or else the
/// machine's token ([GoogleMachine]), or no token.
final class GcsService implements ObjectService {
  private static final String TOKEN = "CLOUDSDK_AUTH_ACCESS_TOKEN";
  private static final String ANONYMOUS = "GANTRY_GCS_ANONYMOUS";
  private static final String PAYER = "GOOGLE_CLOUD_QUOTA_PROJECT";
  private static final String EMULATOR = "STORAGE_EMULATOR_HOST";

  private final URI endpoint;
  private final Optional<String> token;
  private final Optional<String> payer;
  private final @Nullable GoogleMachine machine;

  /// @throws dev.gantry.core.MisuseException if a setting is wrong
  GcsService(Function<String, @Nullable String> variables, HttpStore http) {
    Optional<String> emulator = Variables.given(variables, EMULATOR);
    endpoint =
        ServiceAddress.of(
            EMULATOR,
            emulator
                .map(host -> host.contains("://") ? host : "http://" + host)
                .orElse("https://storage.googleapis.com"));
    boolean anonymous =
        Variables.given(variables, ANONYMOUS)
            .map(text -> Variables.flag(ANONYMOUS, text))
            .orElse(false);
    token =
        Variables.given(variables, TOKEN)
            .filter(_ -> !anonymous)
            .map(text -> HeaderValues.token(text, TOKEN));
    payer =
        Variables.given(variables, PAYER)
            .map(text -> HeaderValues.word(text, PAYER, "the project"));
    machine =
        anonymous || token.isPresent() || emulator.isPresent()
            ? null
            : new GoogleMachine(variables, http);
  }

  @Override
  public URI address(ObjectName name) {
    return URI.create(endpoint + name.path());
  }

  @Override
  public URI list(ObjectName folder, String after) {
    String query =
        "?list-type=2&delimiter=%2F&prefix="
            + ObjectName.encoded(folder.key())
            + (after.isEmpty() ? "" : "&continuation-token=" + ObjectName.encoded(after));
    return URI.create(endpoint + "/" + folder.bucket() + query);
  }

  @Override
  public Page page(String answer) {
    return new Page(
        XmlText.elements(answer, "<Contents><Key>"),
        XmlText.element(answer, "NextContinuationToken"));
  }

  @Override
  public Map<String, String> of(String method, URI address, String range) throws IOException {
    if (!Redirects.isSameServer(endpoint, address)) {
      return Map.of();
    }
    Map<String, String> headers = new HashMap<>();
    token().ifPresent(secret -> headers.put("Authorization", "Bearer " + secret));
    payer.ifPresent(project -> headers.put("x-goog-user-project", project));
    return headers;
  }

  private Optional<String> token() throws IOException {
    return machine == null ? token : machine.token();
  }

  @Override
  public String advice(int status) {
    boolean known = token.isPresent() || (machine != null && machine.isThere());
    return switch (status) {
      case 401 ->
          known
              ? "the token has expired or is not valid: renew it in " + TOKEN
              : "set " + TOKEN + ", for example to what `gcloud auth print-access-token` prints";
      case 403 ->
          known
              ? "the token's account may not read this"
              : "this is not open to all: set "
                  + TOKEN
                  + ", for example to what `gcloud auth print-access-token` prints";
      case 404 -> "there is no such object or bucket";
      default -> "";
    };
  }
}
