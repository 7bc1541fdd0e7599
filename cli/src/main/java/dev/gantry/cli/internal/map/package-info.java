// SPDX-License-Identifier: Apache-2.0
/// Makes a block by its class for the command map, and reports which tensors its parameters match.
@NullMarked
package dev.gantry.cli.internal.map;

import org.jspecify.annotations.NullMarked;
