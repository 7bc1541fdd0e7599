// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse.ResponseInfo;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The status line and the headers of an answer.
///
/// @param staysOpen whether the connection can carry another request after this answer
record AnswerHead(int statusCode, HttpHeaders headers, boolean staysOpen) implements ResponseInfo {
  /// The length of a body whose end is the end of its connection.
  static final long UNTIL_CLOSED = Long.MAX_VALUE;

  private static final Pattern STATUS = Pattern.compile("HTTP/1\\.([01]) (\\d{3})(?: .*)?");

  /// A header's name and value. The value has only characters that may be sent back with the next
  /// request.
  private static final Pattern HEADER =
      Pattern.compile("([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\\t\\x20-\\x7e\\x80-\\xff]*)");

  /// @param lines the lines of the answer before its first empty line
  static AnswerHead of(List<String> lines) throws IOException {
    Matcher status = STATUS.matcher(lines.getFirst());
    if (!status.matches()) {
      throw new IOException("the answer is not of HTTP/1.1");
    }
    Map<String, List<String>> values = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    for (String line : lines.subList(1, lines.size())) {
      Matcher header = HEADER.matcher(line);
      if (!header.matches()) {
        throw new IOException(
            "the answer has a header without a name, or with a control character");
      }
      values.computeIfAbsent(header.group(1), _ -> new ArrayList<>()).add(header.group(2).strip());
    }
    HttpHeaders headers = HttpHeaders.of(values, (_, _) -> true);
    boolean closes =
        status.group(1).equals("0")
            || headers.firstValue("Connection").orElse("").equalsIgnoreCase("close");
    return new AnswerHead(Integer.parseInt(status.group(2)), headers, !closes);
  }

  @Override
  public HttpClient.Version version() {
    return HttpClient.Version.HTTP_1_1;
  }

  boolean isInterim() {
    return statusCode / 100 == 1;
  }

  /// Whether the body comes in chunks, each of which begins with its length.
  boolean isChunked() throws IOException {
    String encoding = headers.firstValue("Transfer-Encoding").orElse("");
    if (!encoding.isEmpty() && !encoding.equalsIgnoreCase("chunked")) {
      throw new IOException("the answer has an unknown Transfer-Encoding: " + encoding);
    }
    return !encoding.isEmpty();
  }

  /// The length of a body that does not come in chunks, in bytes.
  long bodyBytes() throws IOException {
    if (statusCode == 204 || statusCode == 304) {
      return 0;
    }
    List<String> lengths = headers.allValues("Content-Length").stream().distinct().toList();
    if (lengths.isEmpty()) {
      return UNTIL_CLOSED;
    }
    if (lengths.size() > 1 || !HeaderValues.isCount(lengths.getFirst())) {
      throw new IOException("the answer has a wrong Content-Length: " + lengths);
    }
    return Long.parseLong(lengths.getFirst());
  }
}
