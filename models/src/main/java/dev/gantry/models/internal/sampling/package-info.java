// SPDX-License-Identifier: Apache-2.0
/// Chooses the next token from the scores of all tokens.
@NullMarked
package dev.gantry.models.internal.sampling;

import org.jspecify.annotations.NullMarked;
