// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.benchmarks.result.Absence;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Runs the installed Python peers in one `python3` process, so that they take turns with the other
/// contenders. It finds them by trying each, with a time limit.
final class PythonPeers implements AutoCloseable {
  private static final String SCRIPT = "peers.py";
  private static final long MAX_SECONDS_TO_START = 30;
  private static final long MAX_SECONDS_TO_LOAD = 120;

  private final List<String> names = new ArrayList<>();
  private final List<Absence> absences = new ArrayList<>();
  private @Nullable Process process;

  private PythonPeers() {}

  /// @param interpreter the Python interpreter, such as `python3`
  /// @param device `cpu` or `cuda:N`
  /// @param folder the folder for the script
  static PythonPeers start(String interpreter, String device, Path folder) {
    PythonPeers peers = new PythonPeers();
    try {
      Path script = folder.resolve(SCRIPT);
      try (InputStream in =
          Objects.requireNonNull(PythonPeers.class.getResourceAsStream(SCRIPT), SCRIPT)) {
        Files.copy(in, script);
      }
      peers.start(List.of(interpreter, "-u", script.toString(), device));
    } catch (IOException e) {
      peers.lack(Turns.reason(e));
    }
    return peers;
  }

  private void start(List<String> command) throws IOException {
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    while (true) {
      String[] fields = answer(MAX_SECONDS_TO_START);
      switch (fields[0]) {
        case "have" -> names.add(fields[1]);
        case "lack" -> absences.add(new Absence(fields[1], fields[2]));
        case "ready" -> {
          return;
        }
        default -> throw new IOException("python3 answered " + String.join(" ", fields));
      }
    }
  }

  /// The fields of the process's next line.
  private String[] answer(long seconds) throws IOException {
    Process asked = process;
    if (asked == null) {
      throw new IOException("python3 has ended");
    }
    try {
      // The reader has a buffer and is the same one each time.
      BufferedReader out = asked.inputReader();
      Optional<String> line =
          CompletableFuture.supplyAsync(() -> out.lines().findFirst())
              .get(seconds, TimeUnit.SECONDS);
      return line.orElseThrow(() -> new IOException("python3 has ended")).split("\t", -1);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (TimeoutException | ExecutionException e) {
      close();
      throw new IOException("no answer within " + seconds + " s", e);
    }
  }

  private void lack(String reason) {
    names.clear();
    absences.clear();
    absences.add(new Absence("python3: safetensors, torch, fastsafetensors", reason));
  }

  /// Returns the peers that cannot be used, with the reasons.
  List<Absence> absences() {
    return absences;
  }

  boolean isEmpty() {
    return names.isEmpty();
  }

  /// @param spare the path at which a peer may keep a copy of the file in its own format
  List<Contender> contenders(Path file, Path spare) {
    return names.stream().map(name -> contender(name, file, spare)).toList();
  }

  private double ask(String name, Path file, Path spare) throws IOException {
    if (process == null) {
      throw new IOException("python3 has ended");
    }
    PrintWriter in = new PrintWriter(process.outputWriter(), true);
    in.println(name + "\t" + file + "\t" + spare);
    String[] fields = answer(MAX_SECONDS_TO_LOAD);
    if (fields[0].equals("seconds")) {
      return Double.parseDouble(fields[1]);
    }
    throw new IOException(fields[fields.length - 1]);
  }

  private Contender contender(String name, Path file, Path spare) {
    AtomicBoolean prepared = new AtomicBoolean();
    return Contender.timed(
        name,
        "python3; on the CPU one byte of each page is read, since the file is only mapped",
        () -> {
          if (!prepared.get()) {
            var _ = ask("+" + name, file, spare);
            prepared.set(true);
          }
          return ask(name, file, spare);
        });
  }

  @Override
  public void close() {
    if (process != null) {
      process.destroyForcibly();
      process = null;
    }
  }
}
