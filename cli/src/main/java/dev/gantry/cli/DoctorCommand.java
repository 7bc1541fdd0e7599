// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.contents.CuFileSettings;
import dev.gantry.cli.internal.contents.MachineReport;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cufile.DriverSettings;
import dev.gantry.core.internal.diagnosis.Diagnosis;
import dev.gantry.core.internal.diagnosis.FileDiagnosis;
import dev.gantry.core.internal.diagnosis.Remedy;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.diagnosis.LibtorchChoice;
import dev.gantry.formats.images.ImageDecoding;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `doctor`: reports this machine's devices and drivers, the transport that files would use, and
/// why no better transport is available.
@Command(
    name = "doctor",
    description = "Shows devices and libraries, and the transport that each file would use.")
final class DoctorCommand extends ReportCommand {
  private static final Logger LOG = LoggerFactory.getLogger(DoctorCommand.class);
  private static final long MAX_READ_BYTES = 64L << 20;

  @Parameters(
      arity = "0..1",
      paramLabel = "PATH",
      description =
          "A file, or a folder whose files are examined. Up to 64 MiB of the largest file are read"
              + " to measure the speed of its disk.")
  private @Nullable Path path;

  @Option(
      names = "--topology",
      paramLabel = "FILE",
      description =
          "Has libcufile write the PCIe tree to FILE, for static_routing_filepath of cufile.json.")
  private @Nullable Path topology;

  @Override
  Report report(GantrySession session) {
    if (topology != null) {
      Diagnosis.exportTopology(topology);
    }
    Diagnosis diagnosis = session.diagnose();
    Device device = GantrySession.bestDevice();
    List<FileDiagnosis> files =
        files(path).stream().map(file -> session.diagnose(Location.of(file), device)).toList();
    files.stream()
        .filter(file -> file.directAbsence().isEmpty())
        .max(Comparator.comparingLong(FileDiagnosis::size))
        .ifPresent(file -> readSome(session, file));
    LibtorchChoice libtorch = LibtorchChoice.find();
    List<Remedy.Finding> findings = new ArrayList<>(Remedy.of(diagnosis, files));
    if (!diagnosis.devices().isEmpty() && !libtorch.isForCuda()) {
      findings.add(
          new Remedy.Finding(
              Remedy.CPU_LIBTORCH,
              "libtorch",
              "DJL computes on the CPU beside a GPU: libtorch " + libtorch.describe()));
    }
    if (!diagnosis.devices().isEmpty()) {
      CuFileSettings.finding(DriverSettings.choice()).ifPresent(findings::add);
    }
    return new MachineReport(
        diagnosis,
        libtorch,
        ImageDecoding.jpegLibrary(),
        device,
        session.cacheUse(),
        files,
        session.disks(),
        findings,
        Optional.ofNullable(topology));
  }

  /// Reads the beginning of a file past the page cache, so that the session measures the speed of
  /// its disk.
  private static void readSome(GantrySession session, FileDiagnosis file) {
    long bytes = Math.min(file.size(), MAX_READ_BYTES);
    Extent begin = new Extent(file.prediction().file(), 0, bytes);
    TransferOptions direct = TransferOptions.defaults().withCachePolicy(CachePolicy.DIRECT);
    try (Loaded _ = session.load(List.of(new ExtentRequest(begin, 1)), Device.HOST, direct)) {
      // The bytes are not used; the read only serves to measure the disk.
    } catch (TransferException e) {
      LOG.info("cannot measure the disk of {}: {}", begin.file(), e.getMessage());
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
}
