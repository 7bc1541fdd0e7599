// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Stream;

/// A program in a JVM of its own, with this JVM's class path.
public final class ChildJvm {
  /// Begins the lines in which a suite names the tests that failed in it.
  public static final String FAILED = "FAILED ";

  /// A machine that builds much else takes six minutes for what a quiet one does in one.
  private static final long LIMIT_MINUTES = 30;

  /// How a program ended.
  public record Result(int exit, String out, String err) {
    private static final int SHOWN_LINES = 60;

    /// Names what failed in as few lines as possible, since a build's last lines have room for no more; then
    /// the ends of both streams.
    @Override
    public String toString() {
      return reason() + "\n--- end of out\n" + end(out) + "--- end of err\n" + end(err);
    }

    private String reason() {
      List<String> failed = out.lines().filter(line -> line.startsWith(FAILED)).toList();
      if (!failed.isEmpty()) {
        return String.join("\n", failed);
      }
      // The line of a stack trace that has the message;
      // for a suite that ended early, the class at work.
      String message = last(err, line -> !line.isBlank() && !line.startsWith("\t"));
      return "exit " + exit + ": " + message + " " + last(out, line -> line.startsWith("-- "));
    }

    private static String last(String text, Predicate<String> wanted) {
      return text.lines().filter(wanted).reduce("", (_, line) -> line);
    }

    private static String end(String text) {
      List<String> lines = text.lines().toList();
      List<String> shown = lines.subList(Math.max(0, lines.size() - SHOWN_LINES), lines.size());
      return String.join("\n", shown) + "\n";
    }

    /// Gives what the program wrote to its standard output.
    ///
    /// @throws AssertionError unless it ended well
    public String requirePassed() {
      if (exit != 0) {
        throw new AssertionError(this);
      }
      return out;
    }
  }

  private ChildJvm() {}

  /// A JVM that starts fast: it compiles by C1 only, and one thread collects garbage.
  ///
  /// @param options of the JVM; a `-cp` among them replaces this JVM's class path
  public static ProcessBuilder command(List<String> options, Class<?> main, Object... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(options);
    command.add(main.getName());
    for (Object argument : arguments) {
      command.add(argument.toString());
    }
    return new ProcessBuilder(command);
  }

  /// Runs `main` to its end, with a folder for temporary files of its own, since some tests count what is
  /// there.
  ///
  /// @param heap as `-Xmx` takes it
  /// @param environment what is added to this process's
  /// @throws AssertionError if it does not end within 5 minutes
  public static Result run(
      String heap, Map<String, String> environment, Class<?> main, String... arguments) {
    try {
      Path temporary = Files.createTempDirectory("jvm");
      try {
        return run(temporary, heap, environment, main, arguments);
      } finally {
        remove(temporary);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void remove(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    } catch (IOException | UncheckedIOException _) {
      // A process that the program has started is still at work there.
    }
  }

  private static Result run(
      Path temporary,
      String heap,
      Map<String, String> environment,
      Class<?> main,
      String... arguments)
      throws IOException {
    // Apart from the two streams, which are open while tests count open files; the names are short,
    // since a socket's
    // path has at most 107 bytes.
    Path folder = Files.createDirectory(temporary.resolve("t"));
    ProcessBuilder builder =
        command(
            List.of(
                "--illegal-native-access=deny",
                "-Xmx" + heap,
                "-Dai.djl.offline=true",
                "-Djava.io.tmpdir=" + folder),
            main,
            (Object[]) arguments);
    builder.environment().putAll(environment);
    Path out = temporary.resolve("out.txt");
    Path err = temporary.resolve("err.txt");
    return run(builder.redirectOutput(out.toFile()).redirectError(err.toFile()), out, err);
  }

  private static Result run(ProcessBuilder builder, Path out, Path err) throws IOException {
    Process process = builder.start();
    try {
      if (!process.waitFor(LIMIT_MINUTES, TimeUnit.MINUTES)) {
        process.destroyForcibly().waitFor();
        throw new AssertionError(
            "no end after " + LIMIT_MINUTES + " minutes: " + result(process, out, err));
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
