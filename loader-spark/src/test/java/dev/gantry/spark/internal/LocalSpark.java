// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal;

import org.apache.spark.sql.SparkSession;

/// Spark in the tests' own JVM, which is driver and executor.
public final class LocalSpark {
  private LocalSpark() {}

  public static SparkSession session() {
    return SparkSession.builder()
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", "target/warehouse")
        .getOrCreate();
  }
}
