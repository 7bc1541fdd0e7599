// SPDX-License-Identifier: Apache-2.0
/// Writes a DataFrame as one set of files, even if tasks fail and are repeated.
@NullMarked
package dev.gantry.spark.internal.output;

import org.jspecify.annotations.NullMarked;
