// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/// A JVM of its own in which `libcuda.so.1` and `libcufile.so.0` are the stubs, with this JVM's
/// class path.
///
/// Environment: `GANTRY_STUB_CUDA_DEVICES` (1), `GANTRY_STUB_CUDA_TOTAL` (bytes of each device, 1
/// GiB), `GANTRY_STUB_CUDA_PEERS` (1: devices may reach one another's memory), `GANTRY_STUB_CUDA_FAIL` and `GANTRY_STUB_CUFILE_FAIL` (`function:nth:code[:detail],...`),
/// `GANTRY_STUB_CUFILE_LIMIT` (bytes of a read or write), `GANTRY_STUB_CUFILE_VERSION` (1150).
public final class StubbedJvm {
  private static final long LIMIT_MINUTES = 5;

  /// How a program ended.
  public record Result(int exit, String out, String err) {
    private static final int SHOWN_LINES = 60;

    /// The ends of both streams: what failed stands there, and a suite writes far more.
    @Override
    public String toString() {
      return "exit " + exit + "\n--- end of out\n" + end(out) + "--- end of err\n" + end(err);
    }

    private static String end(String text) {
      List<String> lines = text.lines().toList();
      List<String> shown = lines.subList(Math.max(0, lines.size() - SHOWN_LINES), lines.size());
      return String.join("\n", shown) + "\n";
    }
  }

  private StubbedJvm() {}

  /// Runs `main` to its end; the test is skipped where there is no C compiler.
  public static Result run(Class<?> main, Map<String, String> environment, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--illegal-native-access=deny"));
    command.addAll(List.of("-Xmx256m", "-Dai.djl.offline=true"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("LD_LIBRARY_PATH", NativeStubs.folder().toString());
    builder.environment().putAll(environment);
    try {
      Path out = Files.createTempFile("gantry-out-", ".txt");
      Path err = Files.createTempFile("gantry-err-", ".txt");
      try {
        return run(builder.redirectOutput(out.toFile()).redirectError(err.toFile()), out, err);
      } finally {
        Files.delete(out);
        Files.delete(err);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Result run(ProcessBuilder builder, Path out, Path err) throws IOException {
    Process process = builder.start();
    try {
      if (!process.waitFor(LIMIT_MINUTES, TimeUnit.MINUTES)) {
        process.destroyForcibly().waitFor();
        throw new AssertionError(
            "no end after " + LIMIT_MINUTES + " minutes\n" + result(process, out, err));
      }
      return result(process, out, err);
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for a JVM", e);
    }
  }

  private static Result result(Process process, Path out, Path err) throws IOException {
    return new Result(process.exitValue(), Files.readString(out), Files.readString(err));
  }
}
