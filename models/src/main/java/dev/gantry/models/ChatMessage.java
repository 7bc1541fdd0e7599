// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.core.MisuseException;

/// One message of a conversation.
///
/// @param role the author's role by the name that the model's template knows: `system`, `user` or
///     `assistant`
/// @param content the text
public record ChatMessage(String role, String content) {
  public ChatMessage {
    MisuseException.requireGiven("role", role);
    MisuseException.requireGiven("content", content);
  }

  /// Returns an instruction for the whole conversation. Not every model's template accepts such a
  /// message.
  public static ChatMessage system(String content) {
    return new ChatMessage("system", content);
  }

  /// Returns a message of the user.
  public static ChatMessage user(String content) {
    return new ChatMessage("user", content);
  }

  /// Returns an answer of the model.
  public static ChatMessage assistant(String content) {
    return new ChatMessage("assistant", content);
  }
}
