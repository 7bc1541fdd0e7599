// SPDX-License-Identifier: Apache-2.0
/// Prints the commands' results, for people and as JSON.
@NullMarked
package dev.gantry.cli.internal.output;

import org.jspecify.annotations.NullMarked;
