// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport.FileReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.diagnosis.HostFacts.State;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RemedyTest {
  private static final HostFacts GOOD = host(true, "6.8.0-90-generic", State.ON);
  private static final String NOT_DIRECT =
      "neither nvidia-fs nor peer-to-peer NVMe is available, so cuFile would copy through the CPU";

  @TempDir Path folder;

  private static HostFacts host(boolean nvidiaFs, String kernel, State staticBar1) {
    return new HostFacts(State.OFF, State.OFF, nvidiaFs, "", true, kernel, staticBar1);
  }

  private static Diagnosis gpu(
      long barBytes, String library, String directAbsence, HostFacts host) {
    Diagnosis.CudaDevice device =
        new Diagnosis.CudaDevice(
            new Device.Cuda(0), "some GPU", "0000:01:00.0", 1L << 36, 1L << 36, barBytes);
    return new Diagnosis(
        "", "13.0", List.of(device), library, directAbsence, directAbsence, "", "", host);
  }

  private static Diagnosis good() {
    return gpu(1L << 37, "libcufile.so.0 1.15", "", GOOD);
  }

  private static List<Remedy> remedies(Diagnosis diagnosis, FileDiagnosis... files) {
    return Remedy.of(diagnosis, List.of(files), _ -> "ext4", _ -> DiskFacts.NONE).stream()
        .map(Remedy.Finding::remedy)
        .toList();
  }

  private FileDiagnosis file(Transport transport, String reason, String directAbsence) {
    Location file = Location.of(TestFiles.write(folder.resolve("file"), 1, 10));
    return new FileDiagnosis(new FileReport(file, transport, reason), directAbsence, 10, 0);
  }

  @Test
  void nothingToDo() {
    assertThat(remedies(good(), file(Transport.GDS, "", ""))).isEmpty();
  }

  @Test
  void noDriverIsTheOnlyReason() {
    Diagnosis none =
        new Diagnosis(
            "no CUDA driver", "", List.of(), "", "no CUDA driver", "no CUDA driver", "", "", GOOD);
    assertThat(Remedy.of(none, List.of()))
        .containsExactly(new Remedy.Finding(Remedy.NO_CUDA_DRIVER, "cuda", "no CUDA driver"));
  }

  @Test
  void whatTheLibraryLacks() {
    assertThat(remedies(gpu(1L << 37, "", "libcufile.so.0: cannot open", GOOD)))
        .containsExactly(Remedy.NO_LIBCUFILE);
    assertThat(remedies(gpu(1L << 37, "libcufile.so.0", NOT_DIRECT, GOOD)))
        .containsExactly(Remedy.NO_NVIDIA_FS);
    assertThat(
            remedies(
                gpu(
                    1L << 37,
                    "libcufile.so.0",
                    "cuFile may copy through the CPU without telling: its compatibility mode is"
                        + " allowed in this process, by another user of it or by cufile.json"
                        + " (allow_compat_mode)",
                    GOOD)))
        .containsExactly(Remedy.COMPAT_MODE_ALLOWED);
  }

  @Test
  void whatTheMachineLacks() {
    HostFacts bad = new HostFacts(State.ON, State.ON, true, "", false, "6.8.0", State.ON);
    assertThat(remedies(gpu(256L << 20, "libcufile.so.0", "", bad)))
        .containsExactly(Remedy.SMALL_BAR1, Remedy.IOMMU_ON, Remedy.ACS_ON, Remedy.NO_UDEV_RECORD);
    HostFacts unknown =
        new HostFacts(State.PASS_THROUGH, State.UNKNOWN, false, "", true, "6.8.0", State.ON);
    assertThat(remedies(gpu(0, "libcufile.so.0", "", unknown))).isEmpty();
  }

  @Test
  void whatFilesLack() {
    String failed = "no gds: cuFileHandleRegister failed: file: ";
    assertThat(
            remedies(
                good(),
                file(
                    Transport.STAGED,
                    failed + "cuFile 5027 CU_FILE_HANDLE_NOT_REGISTERED: not registered",
                    "")))
        .containsExactly(Remedy.NO_UDEV_RECORD);
    assertThat(
            remedies(
                good(),
                file(
                    Transport.STAGED,
                    failed + "cuFile 5008 CU_FILE_IO_NOT_SUPPORTED: not supported",
                    "")))
        .containsExactly(Remedy.FILE_SYSTEM);
    assertThat(remedies(good(), file(Transport.STAGED, failed + "errno 13 EACCES: denied", "")))
        .containsExactly(Remedy.NO_PERMISSION);
    assertThat(
            remedies(
                good(), file(Transport.STAGED, "no gds", "open with O_DIRECT: errno 22 EINVAL")))
        .containsExactly(Remedy.NO_DIRECT_READS);
  }

  @Test
  void aKernelThatDoesNotTell() {
    FileDiagnosis told = file(Transport.GDS, "", "");
    assertThat(remedies(good(), new FileDiagnosis(told.prediction(), "", told.size(), -1)))
        .containsExactly(Remedy.CACHE_NOT_TOLD);
  }

  @Test
  void theKindOfFileSystem() {
    FileDiagnosis staged = file(Transport.STAGED, "no gds", "");
    Diagnosis diagnosis = good();
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "overlay", _ -> DiskFacts.NONE))
        .extracting(Remedy.Finding::remedy)
        .containsExactly(Remedy.OVERLAY_FILE_SYSTEM);
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "tmpfs", _ -> DiskFacts.NONE))
        .extracting(Remedy.Finding::remedy)
        .containsExactly(Remedy.IN_MEMORY);
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "btrfs", _ -> DiskFacts.NONE))
        .extracting(Remedy.Finding::remedy)
        .containsExactly(Remedy.FILE_SYSTEM);
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "xfs", _ -> DiskFacts.NONE)).isEmpty();
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "virtiofs", _ -> DiskFacts.NONE))
        .isEmpty();
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "", _ -> DiskFacts.NONE)).isEmpty();
  }

  private static List<Remedy> issues(HostFacts host, String library, String directAbsence) {
    return remedies(gpu(1L << 37, library, directAbsence, host));
  }

  @Test
  void issuesOfKernelsAndVersions() {
    String library = "libcufile.so.0 1.15";
    assertThat(issues(host(true, "6.10.3", State.OFF), library, "")).isEmpty();
    assertThat(issues(host(true, "6.11.0", State.OFF), library, ""))
        .containsExactly(Remedy.SLOW_SMALL_REQUESTS);
    assertThat(issues(host(true, "6.17.0", State.OFF), library, ""))
        .containsExactly(Remedy.NVME_LISTS_HANG, Remedy.SLOW_SMALL_REQUESTS);
    assertThat(issues(host(false, "6.17.0", State.ON), library, ""))
        .containsExactly(Remedy.SLOW_SMALL_REQUESTS);
    assertThat(issues(host(false, "6.17.0", State.ON), library, NOT_DIRECT))
        .containsExactly(Remedy.NO_NVIDIA_FS);
    assertThat(issues(host(false, "6.8.0", State.UNKNOWN), library, "")).isEmpty();
    assertThat(issues(host(true, "6.8.0", State.ON), "libcufile.so.0 1.16", ""))
        .containsExactly(Remedy.UNPATCHED_NVME);
    HostFacts faulty = new HostFacts(State.OFF, State.OFF, true, "2.25.6", true, "6.8.0", State.ON);
    assertThat(issues(faulty, library, "")).containsExactly(Remedy.FAULTY_NVIDIA_FS);
    HostFacts mended = new HostFacts(State.OFF, State.OFF, true, "2.25.7", true, "6.8.0", State.ON);
    assertThat(issues(mended, library, "")).isEmpty();
  }

  @Test
  void theDriversSettingForPeerToPeer() {
    boolean x86 = System.getProperty("os.arch").equals("amd64");
    HostFacts off = host(false, "6.8.0", State.OFF);
    String library = "libcufile.so.0 1.19";
    assertThat(issues(off, library, "")).as("it works without").isEmpty();
    assertThat(issues(off, library, NOT_DIRECT))
        .isEqualTo(
            x86
                ? List.of(Remedy.NO_NVIDIA_FS, Remedy.NO_STATIC_BAR1)
                : List.of(Remedy.NO_NVIDIA_FS));
    assertThat(issues(host(false, "6.8.0", State.ON), library, NOT_DIRECT))
        .containsExactly(Remedy.NO_NVIDIA_FS);
  }

  private List<Remedy> issues(HostFacts host, String library, String kind, DiskFacts disks) {
    FileDiagnosis direct = file(Transport.GDS, "", "");
    Diagnosis diagnosis = gpu(1L << 37, library, "", host);
    return Remedy.of(diagnosis, List.of(direct), _ -> kind, _ -> disks).stream()
        .map(Remedy.Finding::remedy)
        .toList();
  }

  @Test
  void issuesOfDisks() {
    String library = "libcufile.so.0 1.19";
    HostFacts with = host(true, "6.8.0", State.ON);
    HostFacts without = host(false, "6.8.0", State.ON);
    DiskFacts striped = new DiskFacts("raid0", "", "");
    DiskFacts mirrored = new DiskFacts("raid10", "", "");
    assertThat(issues(with, library, "ext4", striped)).isEmpty();
    assertThat(issues(without, library, "ext4", striped))
        .containsExactly(Remedy.RAID_WITHOUT_NVIDIA_FS);
    assertThat(issues(without, library, "ext4", mirrored))
        .containsExactly(Remedy.RAID_WITHOUT_NVIDIA_FS);
    assertThat(issues(host(false, "7.2.0", State.ON), library, "ext4", mirrored))
        .containsExactly(Remedy.SLOW_SMALL_REQUESTS);
    DiskFacts multipath = new DiskFacts("", "nvme0n1", "");
    assertThat(issues(with, library, "ext4", multipath)).isEmpty();
    assertThat(issues(without, library, "ext4", multipath))
        .containsExactly(Remedy.MULTIPATH_WITHOUT_NVIDIA_FS);
    assertThat(issues(with, library, "xfs", new DiskFacts("", "", "nvme0n1 (T10-DIF-TYPE1-CRC)")))
        .containsExactly(Remedy.PROTECTED_BLOCKS);
  }

  @Test
  void issuesOfFileSystems() {
    HostFacts host = host(true, "6.8.0", State.ON);
    assertThat(issues(host, "libcufile.so.0 1.19", "wekafs", DiskFacts.NONE))
        .containsExactly(Remedy.COMPAT_BATCHES);
    assertThat(issues(host, "libcufile.so.0 1.16", "wekafs", DiskFacts.NONE))
        .containsExactly(Remedy.UNPATCHED_NVME, Remedy.COMPAT_BATCHES, Remedy.WEKA_BEFORE_13_3);
    assertThat(issues(host, "libcufile.so.0 1.19", "lustre", DiskFacts.NONE)).isEmpty();
  }

  @Test
  void theDocsHaveEachRemedyAndItsSentence() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "gpu-hosts.md"));
    for (Remedy remedy : Remedy.values()) {
      assertThat(page)
          .contains("| `" + remedy.id() + "` |")
          .contains("| " + remedy.sentence() + " |");
    }
    assertThat(page).contains("\n## What doctor finds\n").contains("\n## Known issues of cuFile\n");
  }
}
