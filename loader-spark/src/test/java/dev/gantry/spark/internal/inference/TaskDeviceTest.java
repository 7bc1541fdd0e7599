// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import dev.gantry.core.MisuseException;
import java.util.Properties;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.resource.ResourceInformation;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/// Spark's local mode assigns no GPUs, so that the tests make a task's context themselves.
class TaskDeviceTest {
  private static void assign(String resource, String... addresses) {
    Map<String, ResourceInformation> resources =
        Map$.MODULE$.from(
            CollectionConverters.asScala(
                java.util.Map.of(resource, new ResourceInformation(resource, addresses))));
    TaskContext$.MODULE$.setTaskContext(
        new TaskContextImpl(
            0, 0, 0, 0, 0, 1, null, new Properties(), null, TaskMetrics.empty(), 1, resources));
  }

  @AfterEach
  void noTask() {
    TaskContext$.MODULE$.unset();
  }

  @Test
  void aTaskComputesOnTheFirstGpuThatItWasAssigned() {
    assign("gpu", "3", "1");
    assertThat(TaskDevice.get()).isEqualTo(Device.gpu(3));
  }

  @Test
  void aTaskWithoutAGpuComputesOnTheCpu() {
    assign("gpu");
    assertThat(TaskDevice.get()).isEqualTo(Device.cpu());
    assign("fpga", "0");
    assertThat(TaskDevice.get()).isEqualTo(Device.cpu());
  }

  @Test
  void aGpuWithoutANumberIsRefused() {
    assign("gpu", "GPU-7f");
    assertThatThrownBy(TaskDevice::get)
        .isInstanceOf(MisuseException.class)
        .hasMessage("resource gpu must have numbers of GPUs as its addresses (was 'GPU-7f')");
  }
}
