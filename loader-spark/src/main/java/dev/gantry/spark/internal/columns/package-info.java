// SPDX-License-Identifier: Apache-2.0
/// Columns of a DataFrame as fields of samples.
@NullMarked
package dev.gantry.spark.internal.columns;

import org.jspecify.annotations.NullMarked;
