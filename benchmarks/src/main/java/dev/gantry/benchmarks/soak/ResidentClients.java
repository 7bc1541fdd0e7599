// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Maps the weights of a server in another process, which is killed now and then. Clients that
/// have mapped the weights must continue.
final class ResidentClients extends Activity {
  private static final int KEPT = 3;

  private final Path socket;
  private final List<NDManager> kept = new ArrayList<>();
  private @Nullable Process server;

  ResidentClients(Scene scene, int number) {
    super(scene, number);
    // A socket's path has at most 107 bytes.
    socket = scene.folder().resolve("r" + number).resolve("w.sock");
  }

  @Override
  void round() throws Exception {
    if (server == null) {
      attempt("start of a server", Fault.NONE, _ -> start());
    }
    if (random.nextInt(30) == 0) {
      attempt("load from a server that was killed", Fault.SERVER, _ -> killed());
      return;
    }
    attempt("load from a server", Fault.NONE, _ -> load());
    if (random.nextInt(4) == 0) {
      attempt("copy from a server to other memory", Fault.NONE, _ -> copy());
    }
  }

  private void start() throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(option -> !option.startsWith("-agentlib") && !option.startsWith("-javaagent"))
        .forEach(command::add);
    command.addAll(
        List.of(
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            System.getProperty("java.class.path"),
            "dev.gantry.cli.GantryCommand",
            "serve-weights",
            scene.weights().file().toString(),
            "--device",
            device.isGpu() ? "cuda:" + device.getDeviceId() : "host",
            "--socket",
            socket.toString()));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    server = process;
    BufferedReader out = process.inputReader();
    String last = "";
    String line = out.readLine();
    while (line != null && !line.startsWith("clients open")) {
      last = line;
      line = out.readLine();
    }
    if (line == null) {
      throw new IOException("the server ended with code " + process.waitFor() + ": " + last);
    }
    // The server's output must be read, because a full pipe would block the server.
    Thread _ =
        Thread.ofPlatform()
            .daemon()
            .name("soak-server-output")
            .start(() -> {
              try (out) {
                while (out.readLine() != null) {}
              } catch (IOException _) {
                // The server was killed.
              }
            });
  }

  private Weights open() {
    return Weights.open("gantry-resident://" + socket, scene.session());
  }

  private void load() {
    NDManager manager = NDManager.newBaseManager(device, "PyTorch");
    kept.add(manager);
    try (Weights weights = open()) {
      verify(weights.load(manager));
    }
    while (kept.size() > KEPT) {
      kept.removeFirst().close();
    }
  }

  private void copy() {
    try (Weights weights = open();
        NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch");
        NDManager source = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
      NDList list = weights.load(source, LoadOptions.builder().optDevice(Device.cpu()).build());
      verify(list);
      NDList copy = new NDList();
      list.forEach(array -> {
        var own = array.duplicate();
        own.setName(array.getName());
        own.attach(manager);
        copy.add(own);
      });
      verify(copy);
    }
  }

  private void verify(NDList list) {
    scene.tally().verified(scene.weights().verify(list));
  }

  private void killed() throws IOException, InterruptedException {
    NDManager manager = NDManager.newBaseManager(device, "PyTorch");
    try (manager;
        Weights weights = open()) {
      NDList list = weights.load(manager);
      stop();
      verify(list);
    }
    try (Weights _ = open()) {
      throw new WrongBytesException("a server that was killed answers");
    }
  }

  private void stop() throws InterruptedException {
    Process process = server;
    if (process != null) {
      process.destroyForcibly();
      var _ = process.waitFor();
      server = null;
    }
  }

  @Override
  public void close() throws IOException {
    kept.forEach(NDManager::close);
    try {
      stop();
    } catch (InterruptedException e) {
      throw new InterruptedIOException();
    }
  }
}
