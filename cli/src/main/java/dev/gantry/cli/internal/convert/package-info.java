// SPDX-License-Identifier: Apache-2.0
/// Writes files of one format as files of another.
@NullMarked
package dev.gantry.cli.internal.convert;

import org.jspecify.annotations.NullMarked;
