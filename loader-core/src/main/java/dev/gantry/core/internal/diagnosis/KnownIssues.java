// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import dev.gantry.core.internal.diagnosis.HostFacts.State;
import dev.gantry.core.internal.diagnosis.Remedy.Finding;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/// Finds NVIDIA's known issues of cuFile by the versions of kernel and library, and by the disks
/// and file systems of the files. `docs/gpu-hosts.md` names the document of each issue.
final class KnownIssues {
  /// The remedies of these issues.
  static final Set<Remedy> ALL =
      Collections.unmodifiableSet(EnumSet.range(Remedy.NVME_LISTS_HANG, Remedy.UNPATCHED_NVME));

  private static final String CUFILE = "cufile";

  /// The end of the library's description if it is the libcufile of CUDA 13.1.
  private static final String OF_CUDA_13_1 = " 1.16";

  private static final String FAULTY_NVIDIA_FS = "2.25.6";

  /// The file systems on which libcufile serves batches in compatibility mode only.
  private static final Set<String> COMPAT_ONLY = Set.of("wekafs", "gpfs", "beegfs");

  private KnownIssues() {}

  static void ofMachine(Diagnosis diagnosis, List<Finding> findings) {
    HostFacts host = diagnosis.host();
    String kernel = "Linux " + host.kernel();
    if (host.mayHang()) {
      findings.add(new Finding(Remedy.NVME_LISTS_HANG, CUFILE, kernel + " with nvidia-fs"));
    }
    if (host.nvidiaFs() && diagnosis.cuFileLibrary().endsWith(OF_CUDA_13_1)) {
      findings.add(
          new Finding(
              Remedy.UNPATCHED_NVME, CUFILE, diagnosis.cuFileLibrary() + " with nvidia-fs"));
    }
    if (host.nvidiaFsVersion().equals(FAULTY_NVIDIA_FS)) {
      findings.add(
          new Finding(Remedy.FAULTY_NVIDIA_FS, CUFILE, "nvidia-fs " + host.nvidiaFsVersion()));
    }
    if (diagnosis.directAbsence().isEmpty() && host.isKernelSince(6, 11)) {
      findings.add(new Finding(Remedy.SLOW_SMALL_REQUESTS, CUFILE, kernel));
    }
    boolean x86 = System.getProperty("os.arch").equals("amd64");
    if (x86 && !diagnosis.directAbsence().isEmpty() && host.staticBar1() == State.OFF) {
      findings.add(
          new Finding(
              Remedy.NO_STATIC_BAR1,
              CUFILE,
              "the driver was loaded without the setting RMForceStaticBar1"));
    }
  }

  static void ofDisks(Diagnosis diagnosis, String kind, DiskFacts disks, List<Finding> findings) {
    HostFacts host = diagnosis.host();
    if (!host.nvidiaFs() && !disks.raid().isEmpty() && !servesRaid(host, disks.raid())) {
      findings.add(
          new Finding(Remedy.RAID_WITHOUT_NVIDIA_FS, CUFILE, "disks form " + disks.raid()));
    }
    if (!host.nvidiaFs() && !disks.multipath().isEmpty()) {
      findings.add(
          new Finding(
              Remedy.MULTIPATH_WITHOUT_NVIDIA_FS,
              CUFILE,
              disks.multipath() + " is of the kernel's multipath"));
    }
    if (!disks.protection().isEmpty()) {
      findings.add(
          new Finding(
              Remedy.PROTECTED_BLOCKS, CUFILE, disks.protection() + " keeps metadata of blocks"));
    }
    if (COMPAT_ONLY.contains(kind)) {
      findings.add(new Finding(Remedy.COMPAT_BATCHES, CUFILE, "files are on " + kind));
    }
    if (kind.equals("wekafs") && diagnosis.cuFileLibrary().endsWith(OF_CUDA_13_1)) {
      findings.add(new Finding(Remedy.WEKA_BEFORE_13_3, CUFILE, diagnosis.cuFileLibrary()));
    }
  }

  /// Whether peer-to-peer DMA works with a RAID of mirrored disks, which it does from Linux 7.2
  /// on. It also needs libcufile 1.19, which is not checked, since that release is older than the
  /// kernel.
  private static boolean servesRaid(HostFacts host, String level) {
    return (level.equals("raid1") || level.equals("raid10")) && host.isKernelSince(7, 2);
  }
}
