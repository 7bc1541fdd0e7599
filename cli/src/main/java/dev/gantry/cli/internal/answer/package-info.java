// SPDX-License-Identifier: Apache-2.0
/// Reads the inputs and prints the outputs of the command `answer`.
@NullMarked
package dev.gantry.cli.internal.answer;

import org.jspecify.annotations.NullMarked;
