// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport.FileReport;
import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.events.DiskSpeeds;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.core.internal.session.Diagnosis;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.HostFacts;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.session.Remedy;
import dev.gantry.core.internal.transport.FileDiagnosis;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.internal.transport.Transports;
import dev.gantry.djl.internal.diagnosis.LibtorchChoice;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `doctor`: what this machine has, which transport files would take, and why not a better one.
@Command(
    name = "doctor",
    description = "Shows devices and libraries, and which transport files would take.")
final class DoctorCommand implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(DoctorCommand.class);
  private static final long MOST_READ_BYTES = 64L << 20;

  @Spec private CommandSpec spec;

  @Parameters(
      arity = "0..1",
      paramLabel = "PATH",
      description =
          "A file, or a folder whose files are looked at. Of the largest, up to 64 MiB are read to"
              + " see how fast its disk is.")
  private @Nullable Path path;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  @Override
  public void run() {
    try (GantrySession session = GantrySession.open()) {
      Diagnosis diagnosis = session.diagnose();
      Device device = GantrySession.bestDevice();
      List<FileDiagnosis> files = new ArrayList<>();
      for (Path file : files(path)) {
        files.add(session.diagnose(Location.of(file), device));
      }
      files.stream()
          .filter(file -> file.directAbsence().isEmpty())
          .max(Comparator.comparingLong(FileDiagnosis::size))
          .ifPresent(file -> readSome(session, file));
      List<DiskSpeeds.Disk> disks = session.disks();
      LibtorchChoice libtorch = LibtorchChoice.find();
      List<Remedy.Finding> findings = new ArrayList<>(Remedy.of(diagnosis, files));
      if (!diagnosis.devices().isEmpty() && !libtorch.isForCuda()) {
        findings.add(
            new Remedy.Finding(
                Remedy.CPU_LIBTORCH,
                "libtorch",
                "DJL computes on the CPU beside a GPU: libtorch " + libtorch.describe()));
      }
      Optional<RemoteCache.Use> cache = session.cacheUse();
      PrintWriter out = spec.commandLine().getOut();
      if (json) {
        Json.print(
            out,
            generator ->
                write(diagnosis, libtorch, device, cache, files, disks, findings, generator));
      } else {
        print(diagnosis, libtorch, device, cache, files, out);
        printDisks(disks, out);
        print(findings, out);
        out.flush();
      }
    }
  }

  /// The disk tells how fast it is only when it is read.
  private static void readSome(GantrySession session, FileDiagnosis file) {
    long bytes = Math.min(file.size(), MOST_READ_BYTES);
    Extent begin = new Extent(file.prediction().file(), 0, bytes);
    TransferOptions direct = TransferOptions.defaults().withCachePolicy(CachePolicy.DIRECT);
    try (Loaded _ = session.load(List.of(new Wanted(begin, 1)), Device.HOST, direct)) {
      // The session has watched the disk.
    } catch (TransferException e) {
      LOG.info("no look at the disk of {}: {}", begin.file(), e.getMessage());
    }
  }

  private static List<Path> files(@Nullable Path path) {
    if (path == null) {
      return List.of();
    }
    if (!Files.isDirectory(path)) {
      return List.of(path);
    }
    try (Stream<Path> entries = Files.list(path)) {
      return entries.filter(Files::isRegularFile).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(path + " cannot be listed", e);
    }
  }

  /// Two devices of which one may reach the other's memory.
  ///
  /// @param refusal why it may not; empty if it may
  private record Peers(Device.Cuda from, Device.Cuda to, String refusal) {
    boolean isRefused() {
      return !refusal.isEmpty();
    }
  }

  private static List<Peers> peers(Diagnosis diagnosis) {
    List<Peers> peers = new ArrayList<>();
    for (Diagnosis.CudaDevice from : diagnosis.devices()) {
      for (Diagnosis.CudaDevice to : diagnosis.devices()) {
        if (!from.device().equals(to.device())) {
          String refusal = Transports.peerRefusal(from.device(), to.device());
          peers.add(new Peers(from.device(), to.device(), refusal));
        }
      }
    }
    return peers;
  }

  private static void print(
      Diagnosis diagnosis,
      LibtorchChoice libtorch,
      Device device,
      Optional<RemoteCache.Use> cache,
      List<FileDiagnosis> files,
      PrintWriter out) {
    if (diagnosis.cudaAbsence().isEmpty()) {
      out.println("CUDA      driver for CUDA " + diagnosis.cudaVersion());
      for (Diagnosis.CudaDevice cuda : diagnosis.devices()) {
        out.printf(
            "  %s    %s at %s, %,d MiB free of %,d, BAR1 %,d MiB%n",
            cuda.device(),
            cuda.name(),
            cuda.pciAddress(),
            cuda.freeBytes() >> 20,
            cuda.totalBytes() >> 20,
            cuda.barBytes() >> 20);
      }
      if (diagnosis.devices().size() > 1) {
        List<Peers> refused = peers(diagnosis).stream().filter(Peers::isRefused).toList();
        out.println(
            "peers     "
                + (refused.isEmpty()
                    ? "each device reaches the others' memory"
                    : refused.stream().map(Peers::refusal).collect(Collectors.joining("; "))));
      }
    } else {
      out.println("CUDA      none: " + diagnosis.cudaAbsence());
    }
    out.println(
        "libcufile "
            + (diagnosis.cuFileAbsence().isEmpty()
                ? diagnosis.cuFileLibrary()
                : "none: " + diagnosis.cuFileAbsence()));
    out.println("libtorch  " + libtorch.describe());
    out.println(
        "direct    "
            + (diagnosis.directAbsence().isEmpty() ? "yes" : "no: " + diagnosis.directAbsence()));
    HostFacts host = diagnosis.host();
    out.println(
        "host      IOMMU %s, ACS %s, nvidia-fs %s, udev's records %s"
            .formatted(
                host.iommu(),
                host.acs(),
                host.nvidiaFs() ? "loaded" : "not loaded",
                host.udev() ? "there" : "not there"));
    out.println(
        "cache     "
            + cache
                .map(use ->
                    String.format(
                        Locale.ROOT,
                        "%s: %d files, %.1f of %.1f GB",
                        use.folder(),
                        use.files(),
                        use.bytes() / 1e9,
                        use.mostBytes() / 1e9))
                .orElse("none: remote files are fetched each time; --cache-folder names one"));
    out.println("loads go to " + device + " by default");
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

  private static void printDisks(List<DiskSpeeds.Disk> disks, PrintWriter out) {
    if (!disks.isEmpty()) {
      Table table =
          new Table("disk", "GB/s", "ms a request", "MiB a request", "at once", "would suffice");
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

  private static void print(List<Remedy.Finding> findings, PrintWriter out) {
    for (Remedy.Finding finding : findings) {
      out.println();
      out.println(finding.about() + ": " + finding.reason());
      out.println("  " + finding.remedy().sentence());
      out.println("  See " + finding.remedy().section() + ", " + finding.remedy().id() + ".");
    }
  }

  private static void write(
      Diagnosis diagnosis,
      LibtorchChoice libtorch,
      Device device,
      Optional<RemoteCache.Use> cache,
      List<FileDiagnosis> files,
      List<DiskSpeeds.Disk> disks,
      List<Remedy.Finding> findings,
      JsonGenerator json)
      throws IOException {
    json.writeStartObject();
    json.writeObjectFieldStart("cuda");
    json.writeStringField("version", diagnosis.cudaVersion());
    json.writeStringField("absence", diagnosis.cudaAbsence());
    json.writeArrayFieldStart("devices");
    for (Diagnosis.CudaDevice cuda : diagnosis.devices()) {
      json.writeStartObject();
      json.writeStringField("device", cuda.device().toString());
      json.writeStringField("name", cuda.name());
      json.writeStringField("pci", cuda.pciAddress());
      json.writeNumberField("freeBytes", cuda.freeBytes());
      json.writeNumberField("totalBytes", cuda.totalBytes());
      json.writeNumberField("bar1Bytes", cuda.barBytes());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("peers");
    for (Peers pair : peers(diagnosis)) {
      json.writeStartObject();
      json.writeStringField("from", pair.from().toString());
      json.writeStringField("to", pair.to().toString());
      json.writeStringField("refusal", pair.refusal());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeEndObject();
    json.writeObjectFieldStart("cufile");
    json.writeStringField("library", diagnosis.cuFileLibrary());
    json.writeStringField("absence", diagnosis.cuFileAbsence());
    json.writeStringField("directAbsence", diagnosis.directAbsence());
    json.writeEndObject();
    json.writeObjectFieldStart("libtorch");
    json.writeStringField("flavor", libtorch.flavor());
    json.writeStringField("source", libtorch.source());
    json.writeEndObject();
    HostFacts host = diagnosis.host();
    json.writeObjectFieldStart("host");
    json.writeStringField("iommu", host.iommu().toString());
    json.writeStringField("acs", host.acs().toString());
    json.writeBooleanField("nvidiaFs", host.nvidiaFs());
    json.writeBooleanField("udev", host.udev());
    json.writeEndObject();
    if (cache.isPresent()) {
      RemoteCache.Use use = cache.get();
      json.writeObjectFieldStart("cache");
      json.writeStringField("folder", use.folder().toString());
      json.writeNumberField("files", use.files());
      json.writeNumberField("bytes", use.bytes());
      json.writeNumberField("mostBytes", use.mostBytes());
      json.writeEndObject();
    }
    json.writeStringField("device", device.toString());
    json.writeArrayFieldStart("files");
    for (FileDiagnosis file : files) {
      json.writeStartObject();
      json.writeStringField("file", file.prediction().file().toString());
      json.writeStringField("transport", file.prediction().transport().toString());
      json.writeStringField("reason", file.prediction().reason());
      json.writeStringField("directAbsence", file.directAbsence());
      json.writeNumberField("bytes", file.size());
      json.writeNumberField("residentBytes", file.residentBytes());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("disks");
    for (DiskSpeeds.Disk disk : disks) {
      json.writeStartObject();
      json.writeStringField("disk", disk.name());
      json.writeNumberField("bytesPerSecond", Math.round(disk.bandwidth()));
      json.writeNumberField("requestSeconds", disk.latency());
      json.writeNumberField("requestBytes", disk.bytes() / disk.requests());
      json.writeNumberField("atOnce", disk.underWay());
      json.writeNumberField("depth", disk.depth());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("remedies");
    for (Remedy.Finding finding : findings) {
      json.writeStartObject();
      json.writeStringField("remedy", finding.remedy().id());
      json.writeStringField("about", finding.about());
      json.writeStringField("reason", finding.reason());
      json.writeStringField("do", finding.remedy().sentence());
      json.writeStringField("see", finding.remedy().section());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeEndObject();
  }
}
