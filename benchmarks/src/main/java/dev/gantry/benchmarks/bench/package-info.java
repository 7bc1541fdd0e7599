// SPDX-License-Identifier: Apache-2.0
/// The bench: ceilings, Gantry and its peers in turns.
@NullMarked
package dev.gantry.benchmarks.bench;

import org.jspecify.annotations.NullMarked;
