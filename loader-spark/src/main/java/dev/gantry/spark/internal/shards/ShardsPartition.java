// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/// A run of samples of one shard.
///
/// @param fileBytes the shard's size
/// @param offsets of each column in the file
/// @param first the first sample
/// @param count how many samples
record ShardsPartition(String file, long fileBytes, List<Long> offsets, long first, long count)
    implements InputPartition {}
