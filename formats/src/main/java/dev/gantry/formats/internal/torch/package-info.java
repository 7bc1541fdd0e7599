// SPDX-License-Identifier: Apache-2.0
/// PyTorch's files: `torch.save` in its ZIP form and its legacy form, whose pickles are read and never run.
@NullMarked
package dev.gantry.formats.internal.torch;

import org.jspecify.annotations.NullMarked;
