package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileLibrary;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.transport.Transports;
import java.util.ArrayList;
import java.util.List;

/// Looks at the machine for a [Diagnosis].
final class Examination {
  private Examination() {}

  static Diagnosis of(Transports paths) {
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
    String directAbsence = absence(paths.cuFile().driver(Transport.GDS));
    String cuFileAbsence =
        directAbsence.isEmpty() ? "" : absence(paths.cuFile().driver(Transport.COMPAT));
    return new Diagnosis(
        cudaAbsence,
        cudaVersion,
        devices,
        CuFileLibrary.find().toOptional().map(Examination::describe).orElse(""),
        cuFileAbsence,
        directAbsence);
  }

  private static String describe(CuFile cuFile) {
    return cuFile.libraryName()
        + cuFile.version().toOptional().map(version -> " " + version).orElse("");
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
    return new Diagnosis.CudaDevice(
        device,
        driver.deviceName(device.ordinal()),
        driver.pciAddress(device.ordinal()),
        memory.freeBytes(),
        memory.totalBytes(),
        context.barBytes());
  }
}
