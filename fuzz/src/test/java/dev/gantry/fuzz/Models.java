// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import dev.gantry.models.HubModel;
import dev.gantry.models.internal.chat.ChatTemplate;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/// Parsers of model folders of the hub.
final class Models {
  private Models() {}

  /// Reads the configuration of a model, and designs its block without loading weights.
  static void configuration(byte[] input) {
    HubModel model = HubModel.of(Places.folder("model", Bundle.files(input)));
    var _ = model.names();
    var _ = model.inputs();
    var _ = model.inputShapes();
    var _ = model.endTokens();
  }

  /// Reads the template of a chat.
  static void chat(byte[] input) {
    Path folder = Places.folder("chat", Bundle.files(input));
    String _ =
        ChatTemplate.read(folder)
            .render(
                List.of(
                    Map.of("role", "system", "content", "a"),
                    Map.of("role", "user", "content", "b")),
                true);
  }
}
