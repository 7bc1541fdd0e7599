// SPDX-License-Identifier: Apache-2.0
/// How the next token is chosen by its score.
@NullMarked
package dev.gantry.models.internal.sampling;

import org.jspecify.annotations.NullMarked;
