// SPDX-License-Identifier: Apache-2.0
/// Determines the format of the files at a location, and opens them.
@NullMarked
package dev.gantry.cli.internal.input;

import org.jspecify.annotations.NullMarked;
