// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import dev.gantry.models.Chat;
import dev.gantry.models.ChatMessage;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextGenerator;
import dev.gantry.models.TextOptions;
import dev.gantry.samples.Usage;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/// Chats with a model. Each answer takes the earlier texts into account.
///
/// `FOLDER` has the hub's files: `config.json`, safetensors, `tokenizer.json` and a chat template.
/// It may also be a name on the hub, `hf://OWNER/NAME`.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ChatWithModel.java FOLDER TEXT …
/// ```
public final class ChatWithModel {
  private ChatWithModel() {}

  public static void main(String[] arguments) {
    Usage.check("ChatWithModel.java FOLDER TEXT …", arguments);
    HubModel hub = HubModel.of(arguments[0]);
    TextGenerator generator =
        TextGenerator.builder()
            .optMaxTokens(200)
            .optTemperature(0.7) // without, the best token always follows
            .optTopP(0.9)
            .optSeed(1)
            .build();
    List<ChatMessage> conversation = new ArrayList<>();
    try (Chat chat = hub.chat(TextOptions.defaults(), generator)) {
      for (String text : List.of(arguments).subList(1, arguments.length)) {
        conversation.add(ChatMessage.user(text));
        StringBuilder answer = new StringBuilder();
        Iterator<String> pieces = chat.stream(conversation);
        while (pieces.hasNext()) {
          String piece = pieces.next();
          System.out.print(piece);
          answer.append(piece);
        }
        System.out.println();
        conversation.add(ChatMessage.assistant(answer.toString()));
      }
    }
  }
}
