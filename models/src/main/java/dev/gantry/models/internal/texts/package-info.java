// SPDX-License-Identifier: Apache-2.0
/// Turns texts into tokens and padded batches, and a model's outputs into vectors and scores.
@NullMarked
package dev.gantry.models.internal.texts;

import org.jspecify.annotations.NullMarked;
