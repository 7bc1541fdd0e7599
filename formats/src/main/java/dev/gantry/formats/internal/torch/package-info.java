// SPDX-License-Identifier: Apache-2.0
/// PyTorch's files: the ZIP form and the legacy form of `torch.save`, and distributed
/// checkpoints. Pickles are read and never executed.
@NullMarked
package dev.gantry.formats.internal.torch;

import org.jspecify.annotations.NullMarked;
