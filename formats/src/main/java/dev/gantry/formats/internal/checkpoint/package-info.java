// SPDX-License-Identifier: Apache-2.0
/// Folders of checkpoints. Each checkpoint consists of safetensors files and a manifest. The
/// manifest is written last; from then on, the checkpoint exists.
@NullMarked
package dev.gantry.formats.internal.checkpoint;

import org.jspecify.annotations.NullMarked;
