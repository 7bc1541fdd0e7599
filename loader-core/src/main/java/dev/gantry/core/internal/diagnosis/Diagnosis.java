// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.NvJpeg;
import dev.gantry.core.internal.transport.TransferEngine;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Describes the hardware and software of this machine that transfers use.
///
/// @param cudaAbsence why there are no CUDA devices; empty if there are
/// @param cudaVersion the version of the CUDA API that the driver serves, such as `13.0`; empty if there is no driver
/// @param devices the CUDA devices
/// @param cuFileLibrary the library that was loaded, with its version; empty if there is none
/// @param cuFileAbsence why cuFile cannot be used at all; empty if it can
/// @param directAbsence why cuFile cannot bypass the CPU; empty if it can
/// @param nvJpegLibrary the libnvjpeg that decodes pictures on a device, with its version; empty if there is none
/// @param nvJpegAbsence why there is no libnvjpeg; empty if there is one
/// @param host the kernel's facts about transfers between disks and GPUs
public record Diagnosis(
    String cudaAbsence,
    String cudaVersion,
    List<CudaDevice> devices,
    String cuFileLibrary,
    String cuFileAbsence,
    String directAbsence,
    String nvJpegLibrary,
    String nvJpegAbsence,
    HostFacts host) {

  public Diagnosis {
    devices = List.copyOf(devices);
  }

  /// A CUDA device, and its memory in bytes.
  ///
  /// @param pci the PCI address as sysfs names it
  /// @param bar1Bytes the size of the BAR1 window, through which other PCIe devices reach the memory; 0 where
  ///     sysfs does not say
  public record CudaDevice(
      Device.Cuda device,
      String name,
      String pci,
      long freeBytes,
      long totalBytes,
      long bar1Bytes) {}

  /// Examines this machine.
  public static Diagnosis of(TransferEngine engine) {
    String cudaAbsence = "";
    String cudaVersion = "";
    List<CudaDevice> devices = new ArrayList<>();
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
      // Without a device there is no memory for cuFile to read into, so its driver is not opened.
      return new Diagnosis(
          cudaAbsence,
          cudaVersion,
          devices,
          "",
          cudaAbsence,
          cudaAbsence,
          "",
          cudaAbsence,
          HostFacts.look());
    }
    String directAbsence = absence(engine.cuFile().driver(Transport.GDS));
    String cuFileAbsence =
        directAbsence.isEmpty() ? "" : absence(engine.cuFile().driver(Transport.COMPAT));
    return new Diagnosis(
        cudaAbsence,
        cudaVersion,
        devices,
        CuFile.find().toOptional().map(Diagnosis::describe).orElse(""),
        cuFileAbsence,
        directAbsence,
        NvJpeg.find().toOptional().map(NvJpeg::description).orElse(""),
        absence(NvJpeg.find()),
        HostFacts.look());
  }

  /// Writes the PCIe tree as libcufile sees it, before the driver of this process is open.
  ///
  /// @throws DeviceUnavailableException if there is no libcufile, or it is older than 1.17
  /// @throws dev.gantry.core.TransferException if libcufile cannot write the file
  public static void exportTopology(Path file) {
    Path _ =
        CuFile.find()
            .then(cuFile -> cuFile.exportTopology(file))
            .orElseThrow(DeviceUnavailableException::new);
  }

  private static String describe(CuFile cuFile) {
    return cuFile.libraryName()
        + cuFile.version().toOptional().map(version -> " " + describe(version)).orElse("");
  }

  private static String describe(CuFile.Version version) {
    return version.isNewerThanKnown()
        ? version + ", newer than " + CuFile.Version.NEWEST + ", the newest that Gantry knows"
        : version.toString();
  }

  private static String absence(Availability<?> availability) {
    return switch (availability) {
      case Availability.Absent<?>(String reason) -> reason;
      case Availability.Present<?> _ -> "";
    };
  }

  private static CudaDevice device(CudaDriver driver, Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    CudaDriver.MemoryInfo memory;
    try (var _ = context.enter()) {
      memory = driver.memoryInfo();
    }
    return new CudaDevice(
        device,
        driver.deviceName(device.ordinal()),
        driver.pciAddress(device.ordinal()),
        memory.freeBytes(),
        memory.totalBytes(),
        context.barBytes());
  }
}
