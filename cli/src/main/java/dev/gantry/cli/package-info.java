// SPDX-License-Identifier: Apache-2.0
/// The `gantry` command line.
@NullMarked
package dev.gantry.cli;

import org.jspecify.annotations.NullMarked;
