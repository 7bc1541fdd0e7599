// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeoutException;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.SparkSession;

/// Runs Spark in the JVM of the tests, which is both driver and executor.
public final class LocalSpark {
  private static final RunningTasks TASKS = new RunningTasks();

  private LocalSpark() {}

  public static SparkSession session() {
    SparkSession session = start();
    // Another test class may have added the listener already.
    session.sparkContext().removeSparkListener(TASKS);
    session.sparkContext().addSparkListener(TASKS);
    return session;
  }

  /// Waits for the tasks that still run after another task has failed. A job ends before these
  /// tasks do.
  public static void awaitTasks() throws InterruptedException, TimeoutException {
    start().sparkContext().listenerBus().waitUntilEmpty();
    TASKS.await();
  }

  private static final class RunningTasks extends SparkListener {
    private final Set<Long> running = new HashSet<>();

    @Override
    public synchronized void onTaskStart(SparkListenerTaskStart start) {
      running.add(start.taskInfo().taskId());
    }

    @Override
    public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
      running.remove(end.taskInfo().taskId());
      notifyAll();
    }

    synchronized void await() throws InterruptedException {
      while (!running.isEmpty()) {
        wait();
      }
    }
  }

  private static SparkSession start() {
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
