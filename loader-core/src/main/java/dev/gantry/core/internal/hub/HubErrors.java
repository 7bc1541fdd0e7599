// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.http.HttpCalls;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;

/// Makes exceptions that say in one line why the hub did not answer a request as wanted, and what
/// the user can do.
final class HubErrors {
  private HubErrors() {}

  /// Returns the failure that an answer reports.
  ///
  /// @param name the file, folder or repository that was asked for
  static TransferException of(
      String operation, HubName name, HubSettings settings, HttpResponse<?> answer) {
    int status = answer.statusCode();
    String code = answer.headers().firstValue("X-Error-Code").orElse("");
    boolean known = settings.token().isPresent();
    String reason =
        switch (code) {
          case "GatedRepo" ->
              known
                  ? "the repository is gated, and the token's user has no access: ask for it at "
                      + page(name, settings)
                  : "the repository is gated: ask for access at "
                      + page(name, settings)
                      + ", and "
                      + login(settings);
          case "RevisionNotFound" ->
              "the repository has no revision '" + name.revision() + "'; name another after @";
          case "EntryNotFound" ->
              "revision '" + name.revision() + "' of the repository has no such file";
          case "RepoNotFound" -> noRepository(known, settings);
          default ->
              switch (status) {
                case 401 ->
                    known
                        ? "the hub does not accept the token: renew it in HF_TOKEN or "
                            + settings.tokenFile()
                        : noRepository(false, settings);
                case 403 ->
                    known
                        ? "the token does not allow this: give it the right to read the repository"
                        : "the hub forbids this without a token: " + login(settings);
                case 404 -> "the hub has no such file or repository";
                case 429 ->
                    "too many requests: wait some minutes"
                        + (known ? "" : ", or " + login(settings) + ", which allows more");
                default ->
                    status >= 500
                        ? "the hub failed: try again later"
                        : "the hub refused"
                            + (status / 100 == 3 ? ": a redirect leads nowhere" : "");
              };
        };
    return failure(operation, name, status, reason);
  }

  private static String noRepository(boolean known, HubSettings settings) {
    return known
        ? "there is no such repository, or the token may not see it"
        : "there is no such repository, or it is private: check the name; for a private one, "
            + login(settings);
  }

  private static String page(HubName name, HubSettings settings) {
    return settings.endpoint() + "/" + name.kind().prefix + name.repository();
  }

  private static String login(HubSettings settings) {
    return "set HF_TOKEN or write the token to " + settings.tokenFile();
  }

  /// Returns the failure for a hub that did not answer.
  static TransferException unreached(
      String operation, HubName name, HubSettings settings, IOException reason) {
    return new TransferException(
        operation,
        name.toString(),
        new Failure.Remote(
            0,
            "the hub at %s was not reached (%s); without it, only what is in %s can be read"
                .formatted(settings.endpoint(), HttpCalls.reason(reason), settings.cache())),
        reason);
  }

  /// Returns the failure for a cached file whose size differs from the hub's. The message names
  /// the file, since Gantry never removes a file of the cache by itself.
  static TransferException damaged(HubName name, Path pointer, long found, long right) {
    Path blob = pointer;
    try {
      blob = pointer.toRealPath();
    } catch (IOException _) {
      // The message then names the pointer instead of the blob.
    }
    return failure(
        "open",
        name,
        0,
        "%s has %d bytes instead of %d: remove it, and it is fetched again"
            .formatted(blob, found, right));
  }

  /// Returns the failure for a file that the cache lacks while the hub may not be asked.
  static TransferException offline(String operation, HubName name, HubSettings settings) {
    return failure(
        operation,
        name,
        0,
        settings.cache()
            + " does not have this, and HF_HUB_OFFLINE forbids to ask the hub: unset it, or fetch"
            + " this where the hub is reached");
  }

  /// Returns the failure for an answer that breaks the hub's rules.
  static TransferException wrong(String operation, HubName name, String what) {
    return failure(operation, name, 0, what + ": does HF_ENDPOINT name a hub?");
  }

  static TransferException failure(String operation, HubName name, int status, String reason) {
    return new TransferException(operation, name.toString(), new Failure.Remote(status, reason));
  }

  /// Whether asking again is useless: the hub has no such revision or file, or the caller
  /// cancelled.
  static boolean isFinal(TransferException e) {
    return e.isNotFound() || e.failure() instanceof Failure.Cancelled;
  }
}
