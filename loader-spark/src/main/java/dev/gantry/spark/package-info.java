// SPDX-License-Identifier: Apache-2.0
/// Batch inference on the executors of Apache Spark. The data sources `gantry-shards` and `tfrecord` are
/// used by name.
@NullMarked
package dev.gantry.spark;

import org.jspecify.annotations.NullMarked;
