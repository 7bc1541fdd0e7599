// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.fuzz.AnswerServer;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/// Parsers of HTTP servers' answers.
public final class HttpAnswers {
  private static final int RANGE_BYTES = 64;
  private static final HttpStore STORE =
      new HttpStore(new RetryLimits(1, Duration.ZERO, Duration.ofSeconds(20)));

  private HttpAnswers() {}

  /// Reads the head of an answer, without a connection.
  public static void head(byte[] input) throws IOException {
    List<String> lines = new String(input, StandardCharsets.ISO_8859_1).lines().toList();
    AnswerHead head = AnswerHead.of(lines.isEmpty() ? List.of("") : lines);
    if (!head.isChunked()) {
      long _ = head.bodyBytes();
    }
    var _ = FileVersion.modified(head);
    var _ = Redirects.target(URI.create("http://localhost/file"), head);
    FileVersion.of(head, false).check(head, 0, 1);
  }

  /// Opens and reads a file of a server that gives this answer.
  public static void file(byte[] input) {
    int port = AnswerServer.answering(List.of(input)).port();
    Location.Remote file = (Location.Remote) Location.of("http://127.0.0.1:" + port + "/file");
    try (SourceFile open = new SourceFile(file, STORE.open(file, CachePolicy.BUFFERED));
        Arena arena = Arena.ofShared()) {
      long bytes = Math.min(RANGE_BYTES, open.size());
      boolean _ = open.read(arena.allocate(Math.max(1, bytes)), 0, bytes, false);
    }
  }
}
