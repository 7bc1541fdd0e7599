// SPDX-License-Identifier: Apache-2.0
/// Turns a conversation into a prompt, and the tokens of an answer into text.
@NullMarked
package dev.gantry.models.internal.chat;

import org.jspecify.annotations.NullMarked;
