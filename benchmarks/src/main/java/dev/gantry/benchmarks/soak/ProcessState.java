// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.OwnProcess;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.ObjectName;

/// What the process holds while no activity runs.
///
/// @param descriptors how many of each kind are open, but for what the JVM opens for itself at any time
/// @param sockets what the kernel knows of each socket
/// @param folderFiles descriptors and mappings of the soak's own files
/// @param threads the names of all threads, without numbers, and how many have each
/// @param deviceBytes memory of all devices that is in use, by whomever
record ProcessState(
    LiveResources.Snapshot held,
    Map<String, Long> descriptors,
    List<String> sockets,
    List<String> folderFiles,
    long mappings,
    Map<String, Long> threads,
    long residentBytes,
    long directBytes,
    long heapBytes,
    long deviceBytes) {
  static ProcessState now(Path folder, List<Device> devices) throws IOException {
    System.gc();
    GantrySession.shared().freeIdle();
    trim();
    LiveResources.Snapshot held = LiveResources.snapshot();
    List<String> open = OwnProcess.programsDescriptors();
    List<String> maps = OwnProcess.mappings();
    List<String> ours =
        new ArrayList<>(open.stream().filter(file -> within(folder, file)).toList());
    maps.stream().filter(line -> line.contains(" " + folder)).forEach(ours::add);
    return new ProcessState(
        held,
        count(open.stream().map(target -> target.replaceAll("\\d+", "N"))),
        OwnProcess.sockets(),
        List.copyOf(ours),
        maps.size(),
        count(
            Thread.getAllStackTraces().keySet().stream()
                .map(thread -> thread.getName().replaceAll("\\d+", "N"))),
        OwnProcess.residentBytes(),
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .mapToLong(BufferPoolMXBean::getMemoryUsed)
            .sum(),
        ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
        usedBytes(devices));
  }

  /// Has the allocator give back to the system what is free: what stays resident is in use then.
  private static void trim() throws IOException {
    try {
      var _ =
          ManagementFactory.getPlatformMBeanServer()
              .invoke(
                  new ObjectName("com.sun.management:type=DiagnosticCommand"),
                  "systemTrimNativeHeap",
                  new Object[0],
                  new String[0]);
    } catch (JMException e) {
      throw new IOException("the JVM cannot trim the native heap", e);
    }
  }

  private static boolean within(Path folder, String file) {
    return Path.of(file).startsWith(folder);
  }

  private static Map<String, Long> count(Stream<String> names) {
    return names.collect(Collectors.groupingBy(name -> name, TreeMap::new, Collectors.counting()));
  }

  private static long usedBytes(List<Device> devices) {
    long used = 0;
    for (Device device : devices) {
      if (device.isGpu()) {
        CudaContext context = CudaContext.of(new dev.gantry.core.Device.Cuda(device.getDeviceId()));
        try (var _ = context.enter()) {
          var memory = context.driver().memoryInfo();
          used += memory.totalBytes() - memory.freeBytes();
        }
      }
    }
    return used;
  }

  long descriptorCount() {
    return descriptors.values().stream().mapToLong(Long::longValue).sum();
  }

  long threadCount() {
    return threads.values().stream().mapToLong(Long::longValue).sum();
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "resident %d MiB, direct %d KiB, heap %d MiB, devices %d MiB, %d descriptors, %d mappings,"
            + " %d threads",
        residentBytes >> 20,
        directBytes >> 10,
        heapBytes >> 20,
        deviceBytes >> 20,
        descriptorCount(),
        mappings,
        threadCount());
  }
}
