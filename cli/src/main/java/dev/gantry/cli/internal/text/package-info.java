// SPDX-License-Identifier: Apache-2.0
/// Reads texts, and writes their tokens as blocks of one length.
@NullMarked
package dev.gantry.cli.internal.text;

import org.jspecify.annotations.NullMarked;
