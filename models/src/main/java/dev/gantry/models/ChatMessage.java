// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.core.MisuseException;

/// One message of a conversation.
///
/// @param role who, as the model's template names it: `system`, `user` or `assistant`
/// @param content the text
public record ChatMessage(String role, String content) {
  public ChatMessage {
    MisuseException.requireGiven("role", role);
    MisuseException.requireGiven("content", content);
  }

  /// Returns an instruction for the whole conversation; not all models take one.
  public static ChatMessage system(String content) {
    return new ChatMessage("system", content);
  }

  /// Returns what the user says.
  public static ChatMessage user(String content) {
    return new ChatMessage("user", content);
  }

  /// Returns what the model answered.
  public static ChatMessage assistant(String content) {
    return new ChatMessage("assistant", content);
  }
}
