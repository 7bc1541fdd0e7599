// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport.FileReport;
import dev.gantry.core.internal.session.Diagnosis;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.HostFacts;
import dev.gantry.core.internal.session.Remedy;
import dev.gantry.core.internal.transport.FileDiagnosis;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
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
  @Spec private CommandSpec spec;

  @Parameters(
      arity = "0..1",
      paramLabel = "PATH",
      description = "A file, or a folder whose files are looked at.")
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
      List<Remedy.Finding> findings = Remedy.of(diagnosis, files);
      PrintWriter out = spec.commandLine().getOut();
      if (json) {
        Json.print(out, generator -> write(diagnosis, device, files, findings, generator));
      } else {
        print(diagnosis, device, files, out);
        print(findings, out);
        out.flush();
      }
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

  private static void print(
      Diagnosis diagnosis, Device device, List<FileDiagnosis> files, PrintWriter out) {
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
    } else {
      out.println("CUDA      none: " + diagnosis.cudaAbsence());
    }
    out.println(
        "libcufile "
            + (diagnosis.cuFileAbsence().isEmpty()
                ? diagnosis.cuFileLibrary()
                : "none: " + diagnosis.cuFileAbsence()));
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
      Device device,
      List<FileDiagnosis> files,
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
    json.writeEndObject();
    json.writeObjectFieldStart("cufile");
    json.writeStringField("library", diagnosis.cuFileLibrary());
    json.writeStringField("absence", diagnosis.cuFileAbsence());
    json.writeStringField("directAbsence", diagnosis.directAbsence());
    json.writeEndObject();
    HostFacts host = diagnosis.host();
    json.writeObjectFieldStart("host");
    json.writeStringField("iommu", host.iommu().toString());
    json.writeStringField("acs", host.acs().toString());
    json.writeBooleanField("nvidiaFs", host.nvidiaFs());
    json.writeBooleanField("udev", host.udev());
    json.writeEndObject();
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
