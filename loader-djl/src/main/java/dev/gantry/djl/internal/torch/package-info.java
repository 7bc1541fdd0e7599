// SPDX-License-Identifier: Apache-2.0
/// libtorch's C functions, bound by hand, and what Gantry asks of DJL's PyTorch engine.
@NullMarked
package dev.gantry.djl.internal.torch;

import org.jspecify.annotations.NullMarked;
