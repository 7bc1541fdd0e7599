// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Device;
import dev.gantry.core.TransferReport.FileReport;
import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.diagnosis.Diagnosis;
import dev.gantry.core.internal.diagnosis.FileDiagnosis;
import dev.gantry.core.internal.diagnosis.HostFacts;
import dev.gantry.core.internal.diagnosis.Remedy;
import dev.gantry.core.internal.events.DiskSpeeds;
import dev.gantry.djl.internal.diagnosis.LibtorchChoice;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/// Reports a machine's devices and libraries, the transport that each file would use, and why no
/// better transport is available.
///
/// @param jpegDecoder the library that decodes JPEG
/// @param device the device that loads use by default
/// @param topology the file to which libcufile has written the PCIe tree; empty if the user did
///     not ask for it
public record MachineReport(
    Diagnosis diagnosis,
    LibtorchChoice libtorch,
    String jpegDecoder,
    Device device,
    Optional<RemoteCache.Use> cache,
    List<FileDiagnosis> files,
    List<DiskSpeeds.Disk> disks,
    List<Remedy.Finding> findings,
    Optional<Path> topology)
    implements Report {
  /// An ordered pair of devices.
  ///
  /// @param refusal why the first device cannot copy bytes to the second; empty if it can
  private record Peers(Device.Cuda from, Device.Cuda to, String refusal) {}

  private List<Peers> peers() {
    List<Peers> peers = new ArrayList<>();
    for (Diagnosis.CudaDevice from : diagnosis.devices()) {
      for (Diagnosis.CudaDevice to : diagnosis.devices()) {
        if (!from.device().equals(to.device())) {
          peers.add(
              new Peers(from.device(), to.device(), Replicas.refusal(from.device(), to.device())));
        }
      }
    }
    return peers;
  }

  @Override
  public void print(PrintWriter out) {
    printMachine(out);
    printFiles(out);
    printDisks(out);
    printFindings(out);
  }

  private void printMachine(PrintWriter out) {
    line(out, "CUDA", "driver for CUDA " + diagnosis.cudaVersion(), diagnosis.cudaAbsence());
    for (Diagnosis.CudaDevice cuda : diagnosis.devices()) {
      out.printf(
          "  %s    %s at %s, %,d MiB free of %,d, BAR1 %,d MiB%n",
          cuda.device(),
          cuda.name(),
          cuda.pci(),
          cuda.freeBytes() >> 20,
          cuda.totalBytes() >> 20,
          cuda.bar1Bytes() >> 20);
    }
    if (diagnosis.devices().size() > 1) {
      String refusals =
          peers().stream()
              .map(Peers::refusal)
              .filter(refusal -> !refusal.isEmpty())
              .collect(Collectors.joining("; "));
      line(
          out,
          "peers",
          refusals.isEmpty() ? "each device reaches the others' memory" : refusals,
          "");
    }
    String cuFile = diagnosis.cuFileLibrary();
    String unusable = diagnosis.cuFileAbsence();
    line(
        out,
        "libcufile",
        unusable.isEmpty() ? cuFile : cuFile + ", not usable: " + unusable,
        cuFile.isEmpty() ? unusable : "");
    line(out, "libtorch", libtorch.describe(), "");
    line(out, "JPEG", "decoded by " + jpegDecoder, "");
    line(out, "libnvjpeg", diagnosis.nvJpegLibrary(), diagnosis.nvJpegAbsence());
    String direct = diagnosis.directAbsence();
    line(out, "direct", direct.isEmpty() ? "yes" : "no: " + direct, "");
    HostFacts host = diagnosis.host();
    line(
        out,
        "host",
        "Linux %s, IOMMU %s, ACS %s, nvidia-fs %s, udev database %s"
            .formatted(
                host.kernel().isEmpty() ? "unknown" : host.kernel(),
                host.iommu(),
                host.acs(),
                host.nvidiaFs() ? "loaded" : "not loaded",
                host.udev() ? "present" : "missing"),
        "");
    line(
        out,
        "cache",
        cache.map(MachineReport::used).orElse(""),
        cache.isPresent() ? "" : "remote files are fetched each time; --cache-folder keeps them");
    topology.ifPresent(file -> line(out, "topology", "written to " + file, ""));
    out.println("loads go to " + device + " by default");
  }

  private static String used(RemoteCache.Use use) {
    return String.format(
        Locale.ROOT,
        "%s: %d files, %.1f of %.1f GB",
        use.folder(),
        use.files(),
        use.bytes() / 1e9,
        use.mostBytes() / 1e9);
  }

  /// @param absence why there is nothing to report under this name; empty if there is
  private static void line(PrintWriter out, String name, String found, String absence) {
    out.printf("%-9s %s%n", name, absence.isEmpty() ? found : "none: " + absence);
  }

  private void printFiles(PrintWriter out) {
    if (!files.isEmpty()) {
      Table table = new Table("file", "transport", "O_DIRECT", "in page cache", "why not better");
      for (FileDiagnosis file : files) {
        FileReport route = file.prediction();
        table.row(
            route.file().toString(),
            route.transport().toString(),
            file.directAbsence().isEmpty() ? "yes" : file.directAbsence(),
            file.residentBytes() < 0 || file.size() == 0
                ? "unknown"
                : Math.round(100.0 * file.residentBytes() / file.size()) + "%",
            route.reason());
      }
      table.print(out);
    }
  }

  private void printDisks(PrintWriter out) {
    if (!disks.isEmpty()) {
      Table table =
          new Table(
              "disk",
              "GB/s",
              "ms a request",
              "MiB a request",
              "concurrent requests",
              "sufficient requests");
      for (DiskSpeeds.Disk disk : disks) {
        table.row(
            disk.name(),
            String.format(Locale.ROOT, "%.2f", disk.bandwidth() / 1e9),
            String.format(Locale.ROOT, "%.2f", disk.latency() * 1e3),
            String.format(Locale.ROOT, "%.2f", disk.bytes() / (double) disk.requests() / (1 << 20)),
            String.format(Locale.ROOT, "%.1f", disk.underWay()),
            Integer.toString(disk.depth()));
      }
      table.print(out);
    }
  }

  private void printFindings(PrintWriter out) {
    for (Remedy.Finding finding : findings) {
      out.println();
      out.println(finding.about() + ": " + finding.reason());
      out.println("  " + finding.remedy().sentence());
      out.println("  See " + finding.remedy().section() + ", " + finding.remedy().id() + ".");
    }
  }

  @Override
  public Object json() {
    return Json.object()
        .with(
            "cuda",
            Json.object()
                .with("version", diagnosis.cudaVersion())
                .with("absence", diagnosis.cudaAbsence())
                .with("devices", diagnosis.devices())
                .with("peers", peers()))
        .with(
            "cufile",
            Json.object()
                .with("library", diagnosis.cuFileLibrary())
                .with("absence", diagnosis.cuFileAbsence())
                .with("directAbsence", diagnosis.directAbsence()))
        .with("libtorch", libtorch)
        .with("jpeg", jpegDecoder)
        .with(
            "nvjpeg",
            Json.object()
                .with("library", diagnosis.nvJpegLibrary())
                .with("absence", diagnosis.nvJpegAbsence()))
        .with("host", diagnosis.host())
        .with("cache", cache)
        .with("device", device)
        .with("files", files.stream().map(MachineReport::json).toList())
        .with("disks", disks.stream().map(MachineReport::json).toList())
        .with("remedies", findings.stream().map(MachineReport::json).toList())
        .with("topology", topology);
  }

  private static Object json(FileDiagnosis file) {
    return Json.object()
        .with("file", file.prediction().file())
        .with("transport", file.prediction().transport())
        .with("reason", file.prediction().reason())
        .with("directAbsence", file.directAbsence())
        .with("bytes", file.size())
        .with("residentBytes", file.residentBytes());
  }

  private static Object json(DiskSpeeds.Disk disk) {
    return Json.object()
        .with("disk", disk.name())
        .with("bytesPerSecond", Math.round(disk.bandwidth()))
        .with("requestSeconds", disk.latency())
        .with("requestBytes", disk.bytes() / disk.requests())
        .with("atOnce", disk.underWay())
        .with("depth", disk.depth());
  }

  private static Object json(Remedy.Finding finding) {
    return Json.object()
        .with("remedy", finding.remedy().id())
        .with("about", finding.about())
        .with("reason", finding.reason())
        .with("do", finding.remedy().sentence())
        .with("see", finding.remedy().section());
  }
}
