// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.spark.internal.columns.PlannedFile;
import org.apache.spark.sql.connector.read.InputPartition;

/// Some records of one file.
///
/// @param offset where the first begins
/// @param first its number
/// @param count how many, at most
record TfRecordPartition(PlannedFile file, long offset, long first, long count)
    implements InputPartition {}
