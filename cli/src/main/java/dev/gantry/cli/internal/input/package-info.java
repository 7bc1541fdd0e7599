// SPDX-License-Identifier: Apache-2.0
/// Finds out which format a path holds, and opens it.
@NullMarked
package dev.gantry.cli.internal.input;

import org.jspecify.annotations.NullMarked;
