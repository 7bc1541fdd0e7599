// SPDX-License-Identifier: Apache-2.0
/// Folders of checkpoints: each checkpoint is some safetensors files and a manifest. The manifest is
/// written last: with it the checkpoint exists.
@NullMarked
package dev.gantry.formats.internal.checkpoint;

import org.jspecify.annotations.NullMarked;
