package dev.gantry.core;

import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.io.Paths;
import dev.gantry.core.memory.CudaContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Looks at the machine for a [Diagnosis].
final class Examination {
  private Examination() {}

  static Diagnosis of(Paths paths) {
    String cudaAbsence = "";
    String cudaVersion = "";
    List<Diagnosis.CudaDevice> devices = new ArrayList<>();
    switch (CudaDriver.load()) {
      case Availability.Absent<CudaDriver>(String reason) -> cudaAbsence = reason;
      case Availability.Present<CudaDriver>(CudaDriver driver) -> {
        int version = driver.driverVersion();
        cudaVersion = version / 1000 + "." + version % 1000 / 10;
        int count = driver.deviceCount();
        cudaAbsence = count == 0 ? "the CUDA driver finds no device" : "";
        for (int ordinal = 0; ordinal < count; ordinal++) {
          devices.add(device(driver, new Device.Cuda(ordinal)));
        }
      }
    }
    if (devices.isEmpty()) {
      // Without a device there is nothing for cuFile to read into, and its driver is not opened.
      return new Diagnosis(cudaAbsence, cudaVersion, devices, "", cudaAbsence, cudaAbsence);
    }
    return switch (paths.cuFile().driver()) {
      case Availability.Absent<CuFile>(String reason) ->
          new Diagnosis(cudaAbsence, cudaVersion, devices, "", reason, reason);
      case Availability.Present<CuFile>(CuFile cuFile) ->
          new Diagnosis(
              cudaAbsence,
              cudaVersion,
              devices,
              cuFile.libraryName()
                  + cuFile.version().toOptional().map(version -> " " + version).orElse(""),
              "",
              absence(paths.cuFile().direct()));
    };
  }

  private static String absence(Availability<?> availability) {
    return switch (availability) {
      case Availability.Absent<?>(String reason) -> reason;
      case Availability.Present<?> _ -> "";
    };
  }

  private static Diagnosis.CudaDevice device(CudaDriver driver, Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    CudaDriver.MemoryInfo memory;
    try (var _ = context.enter()) {
      memory = driver.memoryInfo();
    }
    String pciAddress = driver.pciAddress(device.ordinal());
    return new Diagnosis.CudaDevice(
        device,
        driver.deviceName(device.ordinal()),
        pciAddress,
        memory.freeBytes(),
        memory.totalBytes(),
        barBytes(pciAddress));
  }

  /// sysfs lists a device's windows as start, end and flags, one a line; BAR1 is the second.
  private static long barBytes(String pciAddress) {
    Path windows = Path.of("/sys/bus/pci/devices", pciAddress, "resource");
    try {
      String[] window = Files.readAllLines(windows).get(1).split(" ", 3);
      long start = Long.decode(window[0]);
      long end = Long.decode(window[1]);
      return end > start ? end - start + 1 : 0;
    } catch (IOException | IndexOutOfBoundsException | NumberFormatException _) {
      return 0;
    }
  }
}
