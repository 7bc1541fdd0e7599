// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.inference;

import ai.djl.Device;
import dev.gantry.core.MisuseException;
import org.apache.spark.TaskContext;
import org.apache.spark.resource.ResourceInformation;

/// Finds the device on which a task computes.
final class TaskDevice {
  /// Spark's name of the resource, as in `spark.task.resource.gpu.amount`.
  private static final String GPU = "gpu";

  private TaskDevice() {}

  /// Returns the first GPU that Spark assigned to the task, or the CPU if there is none.
  static Device get() {
    ResourceInformation gpus = TaskContext.get().resourcesJMap().get(GPU);
    if (gpus == null || gpus.addresses().length == 0) {
      return Device.cpu();
    }
    String address = gpus.addresses()[0];
    try {
      return Device.gpu(Integer.parseInt(address));
    } catch (NumberFormatException _) {
      throw new MisuseException(
          "resource gpu must have numbers of GPUs as its addresses (was '" + address + "')");
    }
  }
}
