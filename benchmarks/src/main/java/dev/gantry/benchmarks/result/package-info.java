// SPDX-License-Identifier: Apache-2.0
/// What a bench has measured, as data, and its JSON.
@NullMarked
package dev.gantry.benchmarks.result;

import org.jspecify.annotations.NullMarked;
