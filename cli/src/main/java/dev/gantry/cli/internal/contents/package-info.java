// SPDX-License-Identifier: Apache-2.0
/// Finds out and shows what the commands doctor, inspect and index report.
@NullMarked
package dev.gantry.cli.internal.contents;

import org.jspecify.annotations.NullMarked;
