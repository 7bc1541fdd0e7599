// SPDX-License-Identifier: Apache-2.0
/// The tools that all measurements share: contenders that run in turns, ceilings, fresh JVMs, and
/// files of random bytes.
@NullMarked
package dev.gantry.benchmarks.harness;

import org.jspecify.annotations.NullMarked;
