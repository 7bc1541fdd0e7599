// SPDX-License-Identifier: Apache-2.0
/// The data source `gantry-shards`.
@NullMarked
package dev.gantry.spark.internal.shards;

import org.jspecify.annotations.NullMarked;
