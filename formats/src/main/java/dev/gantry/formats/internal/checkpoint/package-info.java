// SPDX-License-Identifier: Apache-2.0
/// Folders of checkpoints: each is some safetensors files and a manifest, which is written last and
/// makes it exist.
@NullMarked
package dev.gantry.formats.internal.checkpoint;

import org.jspecify.annotations.NullMarked;
