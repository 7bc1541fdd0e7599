// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.ChildJvm;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.internal.weights.LoadedTensors;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/// Gantry's load of all tensors of a file: reading the header, planning, opening, allocating, reading. If
/// asked, it checks the first load: each tensor's checksum in memory must be that of its bytes in the file.
final class GantryLoad implements Contender {
  private final String name;
  private final GantrySession session;
  private final Path file;
  private final Device device;
  private final TransferOptions options;
  private boolean unchecked;
  private String transports = "";

  GantryLoad(
      String name,
      GantrySession session,
      Path file,
      Device device,
      TransferOptions options,
      boolean check) {
    this.name = name;
    this.session = session;
    this.file = file;
    this.device = device;
    this.options = options;
    this.unchecked = check;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String note() {
    return "transport " + transports;
  }

  @Override
  public double run() {
    long start = System.nanoTime();
    List<ExtentRequest> wanted = wanted(file);
    try (Loaded loaded = session.load(wanted, device, options)) {
      double seconds = (System.nanoTime() - start) / 1e9;
      transports = transports(loaded.report().bytesByTransport());
      if (unchecked) {
        check(wanted, loaded);
        unchecked = false;
      }
      return seconds;
    }
  }

  /// Names the transports that carried the bytes, as `staged` or `gds 80%, staged 20%`.
  private static String transports(Map<Transport, Long> bytesByTransport) {
    long bytes = bytesByTransport.values().stream().mapToLong(Long::longValue).sum();
    return bytesByTransport.entrySet().stream()
        .sorted(Map.Entry.comparingByKey())
        .map(entry ->
            entry.getKey()
                + (bytesByTransport.size() == 1
                    ? ""
                    : " " + Math.round(100.0 * entry.getValue() / bytes) + "%"))
        .collect(Collectors.joining(", "));
  }

  /// Measures the first load of a fresh JVM, which links native calls, runs cold code and, on a GPU, makes its context and
  /// pins buffers. It prints the seconds of the load alone.
  static void main(String[] arguments) {
    ChildJvm.endWithParent();
    long start = System.nanoTime();
    try (GantrySession session = GantrySession.open();
        Loaded _ =
            session.load(
                wanted(Path.of(arguments[0])),
                Device.parse(arguments[1]),
                TransferOptions.defaults())) {
      System.out.println((System.nanoTime() - start) / 1e9);
    }
  }

  static List<ExtentRequest> wanted(Path file) {
    return SafetensorsOpener.open(GantrySession.shared(), file).tensors().values().stream()
        .map(LoadedTensors::wanted)
        .toList();
  }

  private void check(List<ExtentRequest> wanted, Loaded loaded) {
    for (int i = 0; i < wanted.size(); i++) {
      int inMemory = session.checksum(loaded.regions().get(i).source());
      if (inMemory != session.checksum(new Source.FilePart(wanted.get(i).extent()))) {
        throw new WrongBytesException(
            name + " loaded wrong bytes of tensor " + i + " of " + file.getFileName());
      }
    }
  }
}
