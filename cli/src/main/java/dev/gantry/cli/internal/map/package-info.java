// SPDX-License-Identifier: Apache-2.0
/// `map`: a block by its class, and what its parameters have in common with tensors.
@NullMarked
package dev.gantry.cli.internal.map;

import org.jspecify.annotations.NullMarked;
