// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.result.Machine;
import dev.gantry.core.internal.diagnosis.Diagnosis;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Looks at the machine.
final class MachineProbe {
  private static final Path CPUS = Path.of("/proc/cpuinfo");
  private static final Path MEMORY = Path.of("/proc/meminfo");
  private static final Path NVIDIA = Path.of("/proc/driver/nvidia/version");
  private static final int MAX_SECONDS = 5;
  private static final String UNKNOWN = "unknown";

  private MachineProbe() {}

  /// @param folder with the files
  static Machine look(Diagnosis diagnosis, Path folder) throws IOException {
    FileStore store = Files.getFileStore(folder);
    return new Machine(
        field(CPUS, "model name"),
        Runtime.getRuntime().availableProcessors(),
        memory("MemTotal"),
        System.getProperty("os.name") + " " + System.getProperty("os.version"),
        store.type(),
        System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version"),
        diagnosis.devices().stream().map(Diagnosis.CudaDevice::name).toList(),
        driver(diagnosis),
        diagnosis.cuFileLibrary(),
        diagnosis.directAbsence());
  }

  private static String driver(Diagnosis diagnosis) {
    if (diagnosis.cudaVersion().isEmpty()) {
      return "";
    }
    String api = "CUDA " + diagnosis.cudaVersion();
    List<String> lines = lines(NVIDIA);
    return lines.isEmpty() ? api : api + ", " + lines.getFirst().replaceAll("\\s+", " ");
  }

  /// Free memory of the machine, which also files in the page cache may give up.
  static long availableBytes() {
    return memory("MemAvailable");
  }

  private static long memory(String name) {
    String kilobytes = field(MEMORY, name).replaceAll("\\D", "");
    return kilobytes.isEmpty() ? 0 : Long.parseLong(kilobytes) << 10;
  }

  private static String field(Path file, String name) {
    return lines(file).stream()
        .filter(line -> line.startsWith(name))
        .map(line -> line.substring(line.indexOf(':') + 1).strip())
        .findFirst()
        .orElse(UNKNOWN);
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException _) {
      return List.of();
    }
  }

  /// The commit of the sources that this program was built from, where it runs among them; else empty.
  static String commit() {
    try {
      Path folder =
          Path.of(MachineProbe.class.getProtectionDomain().getCodeSource().getLocation().toURI())
              .getParent();
      return folder == null ? "" : commit(folder);
    } catch (URISyntaxException | IOException _) {
      return "";
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      return "";
    }
  }

  private static String commit(Path folder) throws IOException, InterruptedException {
    Process git =
        new ProcessBuilder("git", "-C", folder.toString(), "describe", "--always", "--dirty")
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    try {
      return git.waitFor(MAX_SECONDS, TimeUnit.SECONDS) && git.exitValue() == 0
          ? new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip()
          : "";
    } finally {
      git.destroyForcibly();
    }
  }
}
