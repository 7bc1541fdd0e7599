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
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.ObjectName;

/// The resources that the process holds while no activity runs.
///
/// @param descriptors how many descriptors of each kind are open, without those that the JVM opens
///     for itself at any time
/// @param sockets the kernel's description of each socket
/// @param folderFiles the descriptors and mappings of the soak's own files
/// @param threads how many threads have each name, numbers in the names left out
/// @param residentByName see [OwnProcess#residentByName]
/// @param deviceBytes the used memory of all devices, including that of other processes
record ProcessState(
    LiveResources.Snapshot held,
    Map<String, Long> descriptors,
    List<String> sockets,
    List<String> folderFiles,
    long mappings,
    Map<String, Long> threads,
    long residentBytes,
    SortedMap<String, Long> residentByName,
    long directBytes,
    long heapBytes,
    long deviceBytes) {
  /// Gantry's threads, the soak's, and those of its HTTP server.
  private static final List<String> OWN_THREADS =
      List.of("gantry-", "soak-", "HTTP-Dispatcher", "idle-timeout-task");

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
        threadNames(),
        OwnProcess.residentBytes(),
        OwnProcess.residentByName(),
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .mapToLong(BufferPoolMXBean::getMemoryUsed)
            .sum(),
        ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
        usedBytes(devices));
  }

  /// Makes the allocator return free memory to the system, so that the resident memory afterwards
  /// is in use.
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

  private static SortedMap<String, Long> count(Stream<String> names) {
    return names.collect(Collectors.groupingBy(name -> name, TreeMap::new, Collectors.counting()));
  }

  private static long sum(Map<String, Long> counts) {
    return counts.values().stream().mapToLong(Long::longValue).sum();
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
    return sum(descriptors);
  }

  long threadCount() {
    return sum(threads);
  }

  /// Returns how many threads were started by neither Gantry nor the soak, but by the JVM and by
  /// libraries.
  long foreignThreads() {
    return threadCount() - sum(ownThreads(threads));
  }

  /// Returns how many of Gantry's and the soak's running threads have each name.
  static SortedMap<String, Long> ownThreads() {
    return ownThreads(threadNames());
  }

  private static SortedMap<String, Long> ownThreads(Map<String, Long> threads) {
    SortedMap<String, Long> own = new TreeMap<>(threads);
    own.keySet().removeIf(name -> OWN_THREADS.stream().noneMatch(name::startsWith));
    return own;
  }

  private static Map<String, Long> threadNames() {
    return count(
        Thread.getAllStackTraces().keySet().stream()
            .map(thread -> thread.getName().replaceAll("\\d+", "N")));
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
