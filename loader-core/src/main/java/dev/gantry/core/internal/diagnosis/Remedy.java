// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;

/// Says what the user can do if a cause keeps bytes from a better transport. `docs/gpu-hosts.md`
/// has a table of all remedies.
public enum Remedy {
  NO_CUDA_DRIVER(
      "Install NVIDIA's driver, and give the container the GPU, for example by `--gpus all`."),
  CPU_LIBTORCH(
      "Give DJL a libtorch for CUDA, as docs/on-a-gpu.md says, for example by"
          + " PYTORCH_LIBRARY_PATH."),
  NO_LIBCUFILE(
      "Install CUDA's package libcufile, or name the library by GANTRY_CUFILE_LIBRARY or the system"
          + " property gantry.cufile.library."),
  NO_NVIDIA_FS(
      "Load the module by `modprobe nvidia_fs`, or use the kernel's peer-to-peer DMA: Linux 6.2,"
          + " NVIDIA's open driver, and use_pci_p2pdma in cufile.json."),
  COMPAT_MODE_ALLOWED(
      "Set allow_compat_mode, gds_fallback_io and vanilla_posix_io_mode to false in cufile.json, or"
          + " close the other user of cuFile in this process."),
  DAMAGED_SETTINGS(
      "Mend the settings, or name another file: libcufile may go on without any of them, and says"
          + " so in its log, cufile.log, at most."),
  NO_UDEV_RECORD(
      "Run `udevadm trigger --subsystem-match=block`; give a container the host's records by"
          + " `--volume /run/udev:/run/udev:ro`."),
  SMALL_BAR1(
      "Switch Resizable BAR or Above 4G Decoding on in the firmware; loads work, in smaller pieces,"
          + " until then."),
  IOMMU_ON("Boot with `iommu=off` or `iommu=pt`: the IOMMU slows transfers between devices."),
  ACS_ON(
      "Switch ACS off for the PCIe bridges in the firmware or by setpci: it sends transfers between"
          + " devices through the CPU."),
  NO_PERMISSION("Give this user the right to read the file and the devices below /dev."),
  IN_MEMORY(
      "Nothing: the file system keeps its files in memory, and they are staged at its speed."),
  OVERLAY_FILE_SYSTEM(
      "Put the files on a volume of the container: the overlay file system hides their disk and"
          + " what is in the page cache."),
  FILE_SYSTEM(
      "Put the files on ext4 or XFS on a local NVMe disk, or on a file system that cuFile supports,"
          + " such as Lustre, WekaFS or NFS over RDMA."),
  NO_DIRECT_READS("Use a file system that takes O_DIRECT; loads go through the page cache here."),
  CACHE_NOT_TOLD(
      "Run as the files' owner, or with the right to write to them, on Linux 6.5 or later: the"
          + " kernel then tells what is in the page cache."),
  NVME_LISTS_HANG(
      "Unload nvidia_fs and set use_pci_p2pdma in cufile.json: with nvidia-fs, the kernel may hang"
          + " on NVMe disks that take scatter-gather lists."),
  FAULTY_NVIDIA_FS(
      "Install nvidia-fs 2.25.7 or later: with this version, cuFile's calls may fail."),
  SLOW_SMALL_REQUESTS(
      "Keep requests above 128 KiB, as they are by default (optRequestBytes): the kernel is slower"
          + " with smaller ones past the CPU."),
  RAID_WITHOUT_NVIDIA_FS(
      "Load nvidia_fs, or put the files on a single disk: peer-to-peer DMA does not serve this RAID"
          + " here."),
  MULTIPATH_WITHOUT_NVIDIA_FS(
      "Boot with `nvme_core.multipath=N`, or load nvidia_fs: peer-to-peer DMA does not serve NVMe"
          + " disks of the kernel's multipath."),
  PROTECTED_BLOCKS(
      "Format the disk's namespace with a metadata size of 0: transfers past the CPU do not serve"
          + " NVMe disks that keep protection information."),
  NO_STATIC_BAR1(
      "Load NVIDIA's open driver with"
          + " `NVreg_RegistryDwords=\"RMForceStaticBar1=1;RmForceDisableIomapWC=1\"` for"
          + " peer-to-peer DMA, or load nvidia_fs."),
  COMPAT_BATCHES(
      "Nothing for Gantry, which calls cuFile synchronously: batches of other code go through the"
          + " CPU on this file system."),
  WEKA_BEFORE_13_3(
      "Install libcufile of CUDA 13.3 or later: reads and writes on WekaFS fail with that of CUDA"
          + " 13.1."),
  UNPATCHED_NVME(
      "Unload nvidia_fs where the NVMe driver is not patched for it, or install a libcufile other"
          + " than 1.16: reads may fail from the second file on.");

  /// A remedy, and the reason why it is needed.
  ///
  /// @param about the subject of the finding: `cuda`, `cufile`, `host`, a device, or a file
  public record Finding(Remedy remedy, String about, String reason) {}

  /// The size in bytes below which a BAR1 window does not hold the buffers of a load.
  private static final long SMALL_BAR_BYTES = 1L << 30;

  /// The file systems that cuFile serves, as the kernel names them.
  private static final Set<String> SERVED =
      Set.of(
          "ext4",
          "xfs",
          "nfs",
          "nfs4",
          "lustre",
          "beegfs",
          "wekafs",
          "gpfs",
          "scatefs",
          "virtiofs",
          "panfs");

  private final String sentence;

  Remedy(String sentence) {
    this.sentence = sentence;
  }

  /// Returns the advice to the user, in a sentence.
  public String sentence() {
    return sentence;
  }

  /// Returns the remedy's name for programs, such as `no-cuda-driver`.
  public String id() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /// Returns the section of the docs that explains the remedy.
  public String section() {
    return KnownIssues.ALL.contains(this)
        ? "docs/gpu-hosts.md#known-issues-of-cufile"
        : "docs/gpu-hosts.md#what-doctor-finds";
  }

  /// Returns all findings, each once.
  public static List<Finding> of(Diagnosis diagnosis, List<FileDiagnosis> files) {
    return of(diagnosis, files, Remedy::fileSystem, DiskFacts::of);
  }

  /// @param fileSystem returns the kernel's name of a file's file system; empty if the kernel does not say
  /// @param disks returns what the kernel says about a file's disks
  static List<Finding> of(
      Diagnosis diagnosis,
      List<FileDiagnosis> files,
      Function<Location, String> fileSystem,
      Function<Location, DiskFacts> disks) {
    List<Finding> findings = new ArrayList<>();
    if (!diagnosis.cudaAbsence().isEmpty()) {
      findings.add(new Finding(NO_CUDA_DRIVER, "cuda", diagnosis.cudaAbsence()));
    } else {
      ofMachine(diagnosis, findings);
      KnownIssues.ofMachine(diagnosis, findings);
    }
    for (FileDiagnosis file : files) {
      String kind = fileSystem.apply(file.prediction().file());
      if (diagnosis.cudaAbsence().isEmpty()) {
        KnownIssues.ofDisks(diagnosis, kind, disks.apply(file.prediction().file()), findings);
      }
      ofFile(file, kind, diagnosis.cudaAbsence().isEmpty(), findings);
    }
    return findings.stream().distinct().toList();
  }

  private static void ofMachine(Diagnosis diagnosis, List<Finding> findings) {
    if (diagnosis.cuFileLibrary().isEmpty()) {
      findings.add(new Finding(NO_LIBCUFILE, "cufile", diagnosis.cuFileAbsence()));
    } else if (!diagnosis.directAbsence().isEmpty()) {
      String reason = diagnosis.directAbsence();
      boolean allowed = reason.contains("may copy through the CPU");
      findings.add(new Finding(allowed ? COMPAT_MODE_ALLOWED : NO_NVIDIA_FS, "cufile", reason));
    }
    for (Diagnosis.CudaDevice device : diagnosis.devices()) {
      if (device.bar1Bytes() > 0 && device.bar1Bytes() < SMALL_BAR_BYTES) {
        findings.add(
            new Finding(
                SMALL_BAR1,
                device.device().toString(),
                "BAR1 has " + (device.bar1Bytes() >> 20) + " MiB"));
      }
    }
    HostFacts host = diagnosis.host();
    if (host.iommu() == HostFacts.State.ON) {
      findings.add(new Finding(IOMMU_ON, "host", "the IOMMU is on"));
    }
    if (host.acs() == HostFacts.State.ON) {
      findings.add(new Finding(ACS_ON, "host", "a PCIe bridge has ACS on"));
    }
    if (!host.udev()) {
      findings.add(new Finding(NO_UDEV_RECORD, "host", "/run/udev/data cannot be read"));
    }
  }

  /// @param device whether there is a CUDA device, so that another transport might be better
  private static void ofFile(
      FileDiagnosis file, String kind, boolean device, List<Finding> findings) {
    Location location = file.prediction().file();
    String about = location.toString();
    String reason = file.prediction().reason();
    if (kind.equals("overlay")) {
      findings.add(new Finding(OVERLAY_FILE_SYSTEM, about, "it is on an overlay file system"));
    } else if (kind.equals("tmpfs") || kind.equals("ramfs")) {
      findings.add(new Finding(IN_MEMORY, about, "it is on " + kind));
    } else if (!file.directAbsence().isEmpty()) {
      findings.add(new Finding(NO_DIRECT_READS, about, file.directAbsence()));
    } else if (device && file.prediction().transport() != Transport.GDS) {
      ofRefusal(about, kind, reason, findings);
    }
    if (file.size() > 0 && file.residentBytes() < 0 && location instanceof Location.Local) {
      findings.add(
          new Finding(CACHE_NOT_TOLD, about, "the kernel does not say what is in the page cache"));
    }
  }

  /// Finds the remedies for a file that cuFile refuses; other methods find faults of the machine.
  private static void ofRefusal(String about, String kind, String reason, List<Finding> findings) {
    if (reason.contains("EACCES") || reason.contains("EPERM")) {
      findings.add(new Finding(NO_PERMISSION, about, reason));
    } else if (reason.contains("CU_FILE_HANDLE_NOT_REGISTERED")) {
      findings.add(new Finding(NO_UDEV_RECORD, about, reason));
    } else if ((!kind.isEmpty() && !SERVED.contains(kind)) || reason.contains("NOT_SUPPORTED")) {
      findings.add(new Finding(FILE_SYSTEM, about, reason));
    }
  }

  private static String fileSystem(Location location) {
    if (!(location instanceof Location.Local local)) {
      return "";
    }
    try {
      return Files.getFileStore(local.path()).type();
    } catch (IOException _) {
      return "";
    }
  }
}
