// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.fuzz.AnswerServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Parsers of the hub's answers, and of files of its cache.
public final class HubAnswers {
  private static final HubName NAME = HubName.of(Location.of("hf://owner/name/file"));

  private HubAnswers() {}

  /// Reads a list of a commit's files: a page of the hub's list, or the file in which Python's
  /// library keeps it.
  public static void tree(byte[] input) throws IOException {
    String text = new String(input, StandardCharsets.UTF_8);
    if (text.stripLeading().startsWith("[")) {
      List<HubTree.Entry> entries = new ArrayList<>();
      HubTree.addPage(NAME, text, entries);
      var _ = new HubTree(entries);
    } else {
      String _ = HubTree.sha(NAME, text);
      HubTree tree = HubTree.read(text);
      if (!HubTree.read(tree.text()).equals(tree)) {
        throw new AssertionError("a tree that was written is another when it is read");
      }
    }
  }

  /// Reads the name of a file of the hub.
  public static void name(byte[] input) {
    HubName name = HubName.of(Location.of("hf://" + new String(input, StandardCharsets.UTF_8)));
    if (!name.path().isEmpty() && !HubName.isSafe(name.path())) {
      throw new AssertionError("an unsafe path: " + name.path());
    }
  }

  /// Requests a list or a file from a hub whose answers have the form of
  /// [AnswerServer#structured].
  ///
  /// @param folder the folder of the cache
  public static void answers(byte[] input, Path folder) {
    int port = AnswerServer.structured(input).port();
    Map<String, String> environment =
        Map.of(
            "HF_ENDPOINT", "http://127.0.0.1:" + port,
            "HF_HUB_CACHE", folder.toString(),
            "HF_HOME", folder.toString());
    try (HubStore store = HubStore.with(environment, 0)) {
      if (input.length > 0 && input[0] % 2 == 0) {
        var _ = store.list(Location.of("hf://owner/name"));
      } else {
        store.open(Location.of("hf://owner/name/file"), CachePolicy.BUFFERED).close();
      }
    }
  }
}
