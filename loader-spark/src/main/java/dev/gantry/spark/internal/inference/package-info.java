// SPDX-License-Identifier: Apache-2.0
/// Runs models on executors, and converts rows to their inputs and outputs.
@NullMarked
package dev.gantry.spark.internal.inference;

import org.jspecify.annotations.NullMarked;
