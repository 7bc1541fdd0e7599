// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.http.HeaderValues;
import dev.gantry.core.internal.http.HttpCalls;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.http.Redirects;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Sends requests to the hub. Each call waits for the hub's answer; an interrupt ends the wait.
/// Thread-safe.
final class HubClient {
  private static final Duration METADATA = Duration.ofSeconds(10);
  private static final Duration SMALL_FILE = Duration.ofSeconds(60);
  private static final int MAX_PAGES = 1_000;
  private static final long MAX_TEXT_BYTES = 64L << 20;
  private static final BodyHandler<String> TEXT =
      BodyHandlers.limiting(BodyHandlers.ofString(), MAX_TEXT_BYTES);

  /// The address of the next page in a header `Link`.
  private static final Pattern NEXT = Pattern.compile("<([^<>]+)>\\s*;\\s*rel=\"?next\"?");

  private final HubSettings settings;
  private final HttpCalls calls;

  HubClient(HubSettings settings, HttpStore http) {
    this.settings = settings;
    this.calls = new HttpCalls(http, settings::headers, settings::isHub);
  }

  /// Asks for a file's commit, ETag and size.
  ///
  /// @param patient whether to ask again after transient failures
  /// @param missing receives the commit if the hub says that the commit has no such file
  /// @throws TransferException if the hub is not reached or refuses; the exception has the
  ///     answer's status
  HubFile look(HubName name, boolean patient, Consumer<String> missing) {
    HttpResponse<Void> answer =
        send("HEAD", name, uri(name.resolve()), BodyHandlers.discarding(), METADATA, patient);
    HttpHeaders headers = answer.headers();
    String commit = headers.firstValue("X-Repo-Commit").orElse("");
    if (HubName.isCommit(commit)
        && answer.statusCode() == 404
        && headers.firstValue("X-Error-Code").orElse("").equals("EntryNotFound")) {
      missing.accept(commit);
    }
    boolean redirects = Redirects.target(answer.uri(), answer.statusCode(), headers).isPresent();
    if (!redirects) {
      var _ = required("HEAD", name, answer);
    }
    Optional<String> etag =
        headers
            .firstValue("X-Linked-Etag")
            .or(() -> redirects ? Optional.empty() : headers.firstValue("ETag"))
            .map(tag -> tag.replaceFirst("^W/", "").replace("\"", ""));
    OptionalLong linked = HeaderValues.count(headers, "X-Linked-Size");
    OptionalLong size =
        redirects || headers.firstValue("X-Linked-Size").isPresent()
            ? linked
            : HeaderValues.count(headers, "Content-Length");
    if (!HubName.isCommit(commit)
        || etag.filter(HubFile::isEtag).isEmpty()
        || size.orElse(-1) < 0) {
      throw HubErrors.wrong(
          "HEAD", name, "the answer lacks X-Repo-Commit, an ETag or the file's size");
    }
    return new HubFile(commit, new HubVersion(etag.get(), size.getAsLong()));
  }

  /// Asks which commit a revision is.
  String commit(HubName name, boolean patient) {
    String sha = HubTree.sha(name, text(name, uri(name.revisionApi()), patient).body());
    if (!HubName.isCommit(sha)) {
      throw HubErrors.wrong("GET", name, "the answer about the revision has no commit in 'sha'");
    }
    return sha;
  }

  /// Asks for all files of a commit.
  HubTree tree(HubName name) {
    List<HubTree.Entry> entries = new ArrayList<>();
    Optional<URI> page = Optional.of(uri(name.treeApi()));
    for (int i = 0; page.isPresent(); i++) {
      URI asked = page.get();
      if (i == MAX_PAGES || !settings.isHub(asked)) {
        throw HubErrors.wrong(
            "GET",
            name,
            "the list of files has more than " + MAX_PAGES + " pages, or one at another host");
      }
      HttpResponse<String> answer = text(name, asked, true);
      HubTree.addPage(name, answer.body(), entries);
      page =
          answer
              .headers()
              .firstValue("Link")
              .map(NEXT::matcher)
              .filter(Matcher::find)
              .map(next ->
                  HeaderValues.address(asked, next.group(1))
                      .orElseThrow(() ->
                          HubErrors.wrong(
                              "GET", name, "the list of files has no address of its next page")));
    }
    return new HubTree(entries);
  }

  /// Returns the bytes of a small file.
  ///
  /// @param size the file's size in bytes; a longer answer is cut off
  byte[] bytes(HubName name, long size) {
    BodyHandler<byte[]> body = BodyHandlers.limiting(BodyHandlers.ofByteArray(), size);
    return required("GET", name, send("GET", name, uri(name.resolve()), body, SMALL_FILE, true))
        .body();
  }

  private HttpResponse<String> text(HubName name, URI uri, boolean patient) {
    return required("GET", name, send("GET", name, uri, TEXT, METADATA, patient));
  }

  private <T> HttpResponse<T> required(String method, HubName name, HttpResponse<T> answer) {
    if (answer.statusCode() / 100 != 2) {
      throw HubErrors.of(method, name, settings, answer);
    }
    return answer;
  }

  URI uri(String path) {
    return URI.create(settings.endpoint() + path);
  }

  /// Repeats a request until an answer is final; a refusal is final, too.
  ///
  /// @throws TransferException if no answer arrived
  private <T> HttpResponse<T> send(
      String method, HubName name, URI uri, BodyHandler<T> body, Duration limit, boolean patient) {
    try {
      return calls.send(method, uri, body, limit, patient);
    } catch (IOException e) {
      throw HubErrors.unreached(method, name, settings, e);
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted(method, name.toString());
    }
  }
}
