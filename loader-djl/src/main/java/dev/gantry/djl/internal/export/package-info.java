// SPDX-License-Identifier: Apache-2.0
/// Applies name rules in reverse: it makes the tensors that a block's parameters were loaded from.
@NullMarked
package dev.gantry.djl.internal.export;

import org.jspecify.annotations.NullMarked;
