// SPDX-License-Identifier: Apache-2.0
/// How a conversation becomes one text, and the tokens of an answer become text.
@NullMarked
package dev.gantry.models.internal.chat;

import org.jspecify.annotations.NullMarked;
