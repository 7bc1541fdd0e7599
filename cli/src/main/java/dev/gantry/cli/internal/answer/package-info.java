// SPDX-License-Identifier: Apache-2.0
/// What `answer` reads and prints.
@NullMarked
package dev.gantry.cli.internal.answer;

import org.jspecify.annotations.NullMarked;
