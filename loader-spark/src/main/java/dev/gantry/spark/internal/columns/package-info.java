// SPDX-License-Identifier: Apache-2.0
/// Stores the columns of a DataFrame as fields of samples.
@NullMarked
package dev.gantry.spark.internal.columns;

import org.jspecify.annotations.NullMarked;
