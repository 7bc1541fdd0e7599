// SPDX-License-Identifier: Apache-2.0
/// The tools that all measurements share: contenders that take turns, ceilings, fresh JVMs, files
/// of random bytes.
@NullMarked
package dev.gantry.benchmarks.harness;

import org.jspecify.annotations.NullMarked;
