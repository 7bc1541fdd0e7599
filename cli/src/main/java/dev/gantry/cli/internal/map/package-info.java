// SPDX-License-Identifier: Apache-2.0
/// Makes a block from its class for the command `map`, and reports which tensors match the
/// block's parameters.
@NullMarked
package dev.gantry.cli.internal.map;

import org.jspecify.annotations.NullMarked;
