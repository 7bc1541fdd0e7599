// SPDX-License-Identifier: Apache-2.0
/// The rules for names backwards: which tensors a block's parameters become.
@NullMarked
package dev.gantry.djl.internal.export;

import org.jspecify.annotations.NullMarked;
