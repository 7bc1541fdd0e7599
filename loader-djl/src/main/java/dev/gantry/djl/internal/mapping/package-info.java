// SPDX-License-Identifier: Apache-2.0
/// Finds which tensors fill a block's parameters, and drafts the rules for them. The command line
/// prints the result.
@NullMarked
package dev.gantry.djl.internal.mapping;

import org.jspecify.annotations.NullMarked;
