// SPDX-License-Identifier: Apache-2.0
/// Which format a path holds, and what it is opened as.
@NullMarked
package dev.gantry.cli.internal.input;

import org.jspecify.annotations.NullMarked;
