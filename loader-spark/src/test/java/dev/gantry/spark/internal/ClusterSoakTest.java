// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Tests a cluster of executors in processes of their own, some of which are killed. The driver
/// also runs in a process of its own, because Spark finds its installation by an environment
/// variable.
///
/// `-Dgantry.spark.runs=50` sets the number of sets that are written.
@Tag("soak")
class ClusterSoakTest {
  @TempDir Path folder;

  @Test
  void setsAreCompleteAndUniqueWhateverHappensToTasks() throws Exception {
    drive("writes", Integer.getInteger("gantry.spark.runs", 50).toString());
  }

  @Test
  void aMillionRowsComeBackAsTheyWere() throws Exception {
    drive("million");
  }

  @Test
  void anExecutorLoadsAModelOnce() throws Exception {
    drive("inference");
  }

  private void drive(String... arguments) throws IOException, InterruptedException {
    Path jars = Files.createDirectories(folder.resolve("spark/jars"));
    String classPath =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(ClusterDriver.JAVA_OPTIONS);
    command.addAll(List.of("-Xmx512m", "-cp", classPath, ClusterDriver.class.getName()));
    command.add(Files.createDirectories(folder.resolve("work")).toString());
    command.addAll(List.of(arguments));
    ProcessBuilder driver = new ProcessBuilder(command).inheritIO();
    driver
        .environment()
        .putAll(
            Map.of(
                "SPARK_HOME",
                jars.getParent().toString(),
                "SPARK_SCALA_VERSION",
                "2.13",
                "SPARK_LOCAL_IP",
                "127.0.0.1",
                "OMP_NUM_THREADS",
                "1"));
    assertThat(driver.start().waitFor()).isZero();
  }
}
