package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import java.util.List;

/// What a session found on this machine.
///
/// @param cudaAbsence why there are no CUDA devices; empty where there are
/// @param cudaVersion of the API that the driver serves, such as `13.0`; empty where there is no
///     driver
/// @param devices the CUDA devices
/// @param cuFileLibrary the library that was loaded, with its version; empty where there is none
/// @param cuFileAbsence why cuFile cannot be used at all; empty where it can
/// @param directAbsence why cuFile cannot pass the CPU by; empty where it can
public record Diagnosis(
    String cudaAbsence,
    String cudaVersion,
    List<CudaDevice> devices,
    String cuFileLibrary,
    String cuFileAbsence,
    String directAbsence) {

  public Diagnosis {
    devices = List.copyOf(devices);
  }

  /// @param pciAddress as sysfs names it
  /// @param barBytes the BAR1 window, through which other PCIe devices reach the memory; 0 where
  ///     sysfs does not say
  public record CudaDevice(
      Device.Cuda device,
      String name,
      String pciAddress,
      long freeBytes,
      long totalBytes,
      long barBytes) {}
}
