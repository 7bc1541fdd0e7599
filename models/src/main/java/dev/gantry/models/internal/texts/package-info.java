// SPDX-License-Identifier: Apache-2.0
/// How texts become numbers: tokens, padded batches, and what is made of a model's outputs.
@NullMarked
package dev.gantry.models.internal.texts;

import org.jspecify.annotations.NullMarked;
