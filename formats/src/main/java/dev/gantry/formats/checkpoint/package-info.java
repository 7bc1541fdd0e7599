// SPDX-License-Identifier: Apache-2.0
/// The public types of training checkpoints: the rules for which checkpoints stay, the outcome of a save,
/// and a saved checkpoint.
@NullMarked
package dev.gantry.formats.checkpoint;

import org.jspecify.annotations.NullMarked;
