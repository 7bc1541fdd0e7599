// SPDX-License-Identifier: Apache-2.0
/// What a user of training checkpoints chooses and is handed: which checkpoints stay, what a save
/// did, and which checkpoints there are.
@NullMarked
package dev.gantry.formats.checkpoint;

import org.jspecify.annotations.NullMarked;
