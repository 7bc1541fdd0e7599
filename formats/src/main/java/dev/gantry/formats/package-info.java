// SPDX-License-Identifier: Apache-2.0
/// The words that samples of every format share: the fields that a sample has, and the order in which
/// samples come.
@NullMarked
package dev.gantry.formats;

import org.jspecify.annotations.NullMarked;
