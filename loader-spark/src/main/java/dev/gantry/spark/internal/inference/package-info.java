// SPDX-License-Identifier: Apache-2.0
/// Models on executors, and rows on their way through them.
@NullMarked
package dev.gantry.spark.internal.inference;

import org.jspecify.annotations.NullMarked;
