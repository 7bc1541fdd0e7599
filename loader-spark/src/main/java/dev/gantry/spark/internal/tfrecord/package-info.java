// SPDX-License-Identifier: Apache-2.0
/// The data source `tfrecord`.
@NullMarked
package dev.gantry.spark.internal.tfrecord;

import org.jspecify.annotations.NullMarked;
