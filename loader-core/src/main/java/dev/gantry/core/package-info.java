// SPDX-License-Identifier: Apache-2.0
/// The vocabulary: which bytes are wanted, where they go, how, and what can go wrong.
@NullMarked
package dev.gantry.core;

import org.jspecify.annotations.NullMarked;
