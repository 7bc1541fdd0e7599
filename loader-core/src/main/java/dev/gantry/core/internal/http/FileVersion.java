// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.internal.store.RemoteFault;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse.ResponseInfo;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The version of a file, as a server states it. A different version shows that the file has
/// changed.
///
/// @param validator a strong ETag; if there is none, the value of `Last-Modified`; empty for bytes
///     that never change if the server states neither
/// @param size the file's size in bytes
record FileVersion(String validator, long size) {
  private static final Pattern CONTENT_RANGE =
      Pattern.compile("bytes (\\d{1,18})-(\\d{1,18})/(\\d{1,18})");
  private static final Pattern UNSATISFIED = Pattern.compile("bytes \\*/(\\d{1,18})");

  /// Returns the version that the answer to a request for the first byte states.
  ///
  /// @param fixed whether the address names bytes that never change, so that the answer need not state a version
  static FileVersion of(ResponseInfo answer, boolean fixed) throws RemoteFault {
    HttpHeaders headers = answer.headers();
    boolean isEmpty = isEmpty(answer);
    if (!isEmpty) {
      checkStatus(answer);
    }
    long size = isEmpty ? 0 : Long.parseLong(range(answer).group(3));
    return new FileVersion(fixed ? found(headers).orElse("") : validator(headers), size);
  }

  /// Whether an answer says that the file is empty. No range lies in an empty file: some servers
  /// refuse the range, others send the whole file.
  private static boolean isEmpty(ResponseInfo answer) {
    HttpHeaders headers = answer.headers();
    return switch (answer.statusCode()) {
      case 416 -> {
        Matcher none = UNSATISFIED.matcher(headers.firstValue("Content-Range").orElse(""));
        yield none.matches() && Long.parseLong(none.group(1)) == 0;
      }
      case 200 ->
          found(headers).isPresent()
              && HeaderValues.count(headers, "Content-Length").orElse(1) == 0;
      default -> false;
    };
  }

  /// Checks that an answer brings this range of this version of the file.
  void check(ResponseInfo answer, long offset, long length) throws RemoteFault {
    int status = answer.statusCode();
    if (status == 412 || (status == 200 && !sameAs(answer.headers()))) {
      throw changed();
    }
    checkStatus(answer);
    if (!sameAs(answer.headers())) {
      throw changed();
    }
    Matcher range = range(answer);
    if (Long.parseLong(range.group(3)) != size) {
      throw changed();
    }
    if (Long.parseLong(range.group(1)) != offset
        || Long.parseLong(range.group(2)) != offset + length - 1) {
      throw refusal("the server sent another range: " + range.group());
    }
    long announced = HeaderValues.count(answer.headers(), "Content-Length").orElse(length);
    if (announced != length) {
      throw refusal("the server announced " + announced + " bytes instead of " + length);
    }
  }

  private static void checkStatus(ResponseInfo answer) throws RemoteFault {
    int status = answer.statusCode();
    switch (status) {
      case 206 -> {
        String encoding = answer.headers().firstValue("Content-Encoding").orElse("identity");
        if (!encoding.equals("identity")) {
          throw refusal("the server sent the range encoded: " + encoding);
        }
      }
      case 200 ->
          throw RemoteFault.lasting(
              status, "the server does not serve ranges; it sent the whole file");
      case 416 -> throw RemoteFault.lasting(status, "the file ends before this range");
      default -> {
        String reason = status / 100 == 3 ? "the redirect is not followed" : reason(status);
        throw RemoteFault.of(
            RemoteFault.isPassing(status),
            status,
            reason,
            answer.headers().firstValue("Retry-After").orElse(""));
      }
    }
  }

  private static String reason(int status) {
    return switch (status) {
      case 401 -> "Unauthorized";
      case 403 -> "Forbidden";
      case 404 -> "Not Found";
      case 410 -> "Gone";
      case 429 -> "Too Many Requests";
      default -> status >= 500 ? "the server failed" : "the server refused";
    };
  }

  private static Matcher range(ResponseInfo answer) throws RemoteFault {
    String text = answer.headers().firstValue("Content-Range").orElse("none");
    Matcher range = CONTENT_RANGE.matcher(text);
    if (!range.matches()) {
      throw refusal(
          "the Content-Range of the answer must have offsets and the size (was " + text + ")");
    }
    return range;
  }

  private boolean sameAs(HttpHeaders headers) {
    return validator.equals(found(headers).orElse(""));
  }

  private static String validator(HttpHeaders headers) throws RemoteFault {
    return found(headers)
        .orElseThrow(() ->
            refusal(
                "the server sends neither a strong ETag nor Last-Modified, so a change of the file"
                    + " would go unnoticed"));
  }

  private static Optional<String> found(HttpHeaders headers) {
    return headers
        .firstValue("ETag")
        .filter(tag -> !tag.startsWith("W/"))
        .or(() -> headers.firstValue("Last-Modified"));
  }

  /// Returns when the file was last modified, if the server says so.
  static Optional<Instant> modified(ResponseInfo answer) {
    try {
      return answer
          .headers()
          .firstValue("Last-Modified")
          .map(text -> DateTimeFormatter.RFC_1123_DATE_TIME.parse(text, Instant::from));
    } catch (DateTimeParseException _) {
      return Optional.empty();
    }
  }

  private static RemoteFault changed() {
    return refusal("the file changed after it was opened");
  }

  private static RemoteFault refusal(String reason) {
    return RemoteFault.lasting(0, reason);
  }

  /// Returns the version as messages show it.
  @Override
  public String toString() {
    return size + " bytes, version " + validator;
  }
}
