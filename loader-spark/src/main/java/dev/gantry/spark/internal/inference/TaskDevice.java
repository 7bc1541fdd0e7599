// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.inference;

import ai.djl.Device;
import dev.gantry.core.MisuseException;
import org.apache.spark.TaskContext;
import org.apache.spark.resource.ResourceInformation;

/// The device on which a task computes.
final class TaskDevice {
  /// Spark's name of the resource (`spark.task.resource.gpu.amount`).
  private static final String GPU = "gpu";

  private TaskDevice() {}

  /// The first GPU that Spark gave the task, or the CPU.
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
