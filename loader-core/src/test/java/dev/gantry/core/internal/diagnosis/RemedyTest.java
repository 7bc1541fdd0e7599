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

/// What doctor has people do.
class RemedyTest {
  private static final HostFacts GOOD = new HostFacts(State.OFF, State.OFF, true, true);
  private static final String NOT_DIRECT =
      "neither nvidia-fs nor peer-to-peer NVMe is available, so cuFile would copy through the CPU";

  @TempDir Path folder;

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
    return Remedy.of(diagnosis, List.of(files), _ -> "ext4").stream()
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
    HostFacts bad = new HostFacts(State.ON, State.ON, true, false);
    assertThat(remedies(gpu(256L << 20, "libcufile.so.0", "", bad)))
        .containsExactly(Remedy.SMALL_BAR1, Remedy.IOMMU_ON, Remedy.ACS_ON, Remedy.NO_UDEV_RECORD);
    HostFacts unknown = new HostFacts(State.PASS_THROUGH, State.UNKNOWN, false, true);
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
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "overlay"))
        .extracting(Remedy.Finding::remedy)
        .containsExactly(Remedy.OVERLAY_FILE_SYSTEM);
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "tmpfs"))
        .extracting(Remedy.Finding::remedy)
        .containsExactly(Remedy.IN_MEMORY);
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "btrfs"))
        .extracting(Remedy.Finding::remedy)
        .containsExactly(Remedy.FILE_SYSTEM);
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "xfs")).isEmpty();
    assertThat(Remedy.of(diagnosis, List.of(staged), _ -> "")).isEmpty();
  }

  @Test
  void theDocsHaveEachRemedyAndItsSentence() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "gpu-hosts.md"));
    for (Remedy remedy : Remedy.values()) {
      assertThat(page)
          .contains("| `" + remedy.id() + "` |")
          .contains("| " + remedy.sentence() + " |");
    }
    assertThat(page).contains("\n## What doctor finds\n");
  }
}
