// SPDX-License-Identifier: Apache-2.0
/// Collects and prints the results of the commands `doctor`, `inspect` and `index`.
@NullMarked
package dev.gantry.cli.internal.contents;

import org.jspecify.annotations.NullMarked;
