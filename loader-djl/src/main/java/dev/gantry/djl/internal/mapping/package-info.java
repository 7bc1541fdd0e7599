// SPDX-License-Identifier: Apache-2.0
/// Finds which tensors a block's parameters may be, and drafts the rules for it. The command line
/// prints what is found.
@NullMarked
package dev.gantry.djl.internal.mapping;

import org.jspecify.annotations.NullMarked;
