// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.internal.http.HeaderValues;
import dev.gantry.core.internal.http.Redirects;
import dev.gantry.core.internal.http.ServiceAddress;
import dev.gantry.core.internal.store.Variables;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The hub's address, its cache's folder and the token, from the variables that Python's
/// `huggingface_hub` reads. System properties of the same names take precedence.
///
/// @param endpoint the hub's address, without a slash at its end
/// @param cache the folder with the repositories' folders
/// @param token the token to send with requests; empty for none
/// @param tokenFile the file to read the token from if no variable has it
/// @param offline whether the hub is never asked
/// @param links whether snapshots are symbolic links to blobs
record HubSettings(
    URI endpoint,
    Path cache,
    Optional<String> token,
    Path tokenFile,
    boolean offline,
    boolean links) {
  private static final Set<String> TRUE = Set.of("1", "ON", "YES", "TRUE");
  private static final String ENDPOINT = "HF_ENDPOINT";

  /// The settings of this process.
  ///
  /// @throws dev.gantry.core.MisuseException if `HF_ENDPOINT` is not an address
  static HubSettings ofProcess() {
    return of(Variables::ofProcess);
  }

  /// @param variables gives a variable's value; null for one that is not set
  static HubSettings of(Function<String, @Nullable String> variables) {
    Path user = Path.of(System.getProperty("user.home"));
    Path caches = path(variables.apply("XDG_CACHE_HOME"), user).orElse(user.resolve(".cache"));
    Path home = path(variables.apply("HF_HOME"), user).orElse(caches.resolve("huggingface"));
    Path cache =
        path(variables.apply("HF_HUB_CACHE"), user)
            .or(() -> path(variables.apply("HUGGINGFACE_HUB_CACHE"), user))
            .orElse(home.resolve("hub"));
    Path tokenFile = path(variables.apply("HF_TOKEN_PATH"), user).orElse(home.resolve("token"));
    Optional<String> token =
        isTrue(variables.apply("HF_HUB_DISABLE_IMPLICIT_TOKEN"))
            ? Optional.empty()
            : token("HF_TOKEN", variables)
                .or(() -> token("HUGGING_FACE_HUB_TOKEN", variables))
                .or(() ->
                    read(tokenFile).map(text -> HeaderValues.token(text, tokenFile.toString())));
    String offline =
        given(variables.apply("HF_HUB_OFFLINE"))
            .or(() -> given(variables.apply("TRANSFORMERS_OFFLINE")))
            .orElse("");
    return new HubSettings(
        ServiceAddress.of(
            ENDPOINT, given(variables.apply(ENDPOINT)).orElse("https://huggingface.co")),
        cache.toAbsolutePath().normalize(),
        token,
        tokenFile,
        isTrue(offline),
        !isTrue(variables.apply("HF_HUB_DISABLE_SYMLINKS")));
  }

  private static Optional<String> token(String name, Function<String, @Nullable String> variables) {
    return given(variables.apply(name)).map(text -> HeaderValues.token(text, name));
  }

  private static Optional<Path> path(@Nullable String text, Path user) {
    return given(text)
        .map(path -> path.startsWith("~/") ? user.resolve(path.substring(2)) : Path.of(path));
  }

  private static Optional<String> given(@Nullable String text) {
    return Optional.ofNullable(text).map(String::strip).filter(value -> !value.isEmpty());
  }

  private static boolean isTrue(@Nullable String text) {
    return text != null && TRUE.contains(text.toUpperCase(Locale.ROOT));
  }

  private static Optional<String> read(Path file) {
    try {
      return given(Files.readString(file, StandardCharsets.UTF_8));
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  /// Whether an address is the hub's. The token is sent to no other address.
  boolean isHub(URI address) {
    return Redirects.isSameServer(endpoint, address);
  }

  /// Returns the headers of a request to an address: the token, if the address is the hub's.
  Map<String, String> headers(String method, URI address, String range) {
    return isHub(address)
        ? token.map(secret -> Map.of("Authorization", "Bearer " + secret)).orElse(Map.of())
        : Map.of();
  }

  /// Hides the token.
  @Override
  public String toString() {
    return endpoint + ", cache " + cache;
  }
}
