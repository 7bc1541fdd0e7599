// SPDX-License-Identifier: Apache-2.0
/// Binds libtorch's C functions, and reads from DJL's PyTorch engine the state that DJL's API does
/// not give.
@NullMarked
package dev.gantry.djl.internal.torch;

import org.jspecify.annotations.NullMarked;
