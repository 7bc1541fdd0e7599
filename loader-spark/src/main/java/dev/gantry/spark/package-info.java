// SPDX-License-Identifier: Apache-2.0
/// Batch inference on the executors of Apache Spark. Spark finds the data sources `gantry-shards`
/// and `tfrecord` by their names.
@NullMarked
package dev.gantry.spark;

import org.jspecify.annotations.NullMarked;
