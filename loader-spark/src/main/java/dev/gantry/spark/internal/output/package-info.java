// SPDX-License-Identifier: Apache-2.0
/// Writing a DataFrame as one set of files, whatever happens to its tasks.
@NullMarked
package dev.gantry.spark.internal.output;

import org.jspecify.annotations.NullMarked;
