// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import dev.gantry.spark.internal.columns.PlannedFile;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/// A run of samples of one shard.
///
/// @param offsets of each column in the file
/// @param first the first sample
/// @param count how many samples
record ShardsPartition(PlannedFile file, List<Long> offsets, long first, long count)
    implements InputPartition {}
