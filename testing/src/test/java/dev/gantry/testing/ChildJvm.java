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
  /// The beginning of the lines in which a suite names its failed tests.
  public static final String FAILED = "FAILED ";

  /// The limit is high, because a machine with other builds takes six minutes for a program that
  /// takes one minute on a quiet machine.
  private static final long LIMIT_MINUTES = 30;

  /// The result of a program that has ended.
  public record Result(int exit, String out, String err) {
    private static final int SHOWN_LINES = 60;

    /// Names the failures in as few lines as possible, because a build shows only its last lines,
    /// and then the ends of both streams.
    @Override
    public String toString() {
      return reason() + "\n--- end of out\n" + end(out) + "--- end of err\n" + end(err);
    }

    private String reason() {
      List<String> failed = out.lines().filter(line -> line.startsWith(FAILED)).toList();
      if (!failed.isEmpty()) {
        return String.join("\n", failed);
      }
      // These are the line of a stack trace that has the message, and, for a suite that ended
      // early, the class that was running.
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

    /// Returns the standard output of the program.
    ///
    /// @throws AssertionError if the exit code is not 0
    public String requirePassed() {
      if (exit != 0) {
        throw new AssertionError(this);
      }
      return out;
    }
  }

  private ChildJvm() {}

  /// Returns the command of a JVM that starts fast: it compiles with C1 only, and one thread
  /// collects garbage.
  ///
  /// @param options the options of the JVM; a `-cp` among them replaces this JVM's class path
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

  /// Runs `main` to its end, with its own folder for temporary files, because some tests count the
  /// files in that folder.
  ///
  /// @param heap the value of `-Xmx`
  /// @param environment variables that are added to this process's environment
  /// @throws AssertionError if the program does not end within 30 minutes
  public static Result run(
      String heap, Map<String, String> environment, Class<?> main, String... arguments) {
    return run(List.of("-Xmx" + heap), environment, main, arguments);
  }

  /// Runs `main` as [#run(String, Map, Class, String...)] does.
  ///
  /// @param options the options of the JVM, `-Xmx` among them
  public static Result run(
      List<String> options, Map<String, String> environment, Class<?> main, String... arguments) {
    try {
      Path temporary = Files.createTempDirectory("jvm");
      try {
        return run(temporary, options, environment, main, arguments);
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
      // A process that the program has started may still write into the folder.
    }
  }

  private static Result run(
      Path temporary,
      List<String> options,
      Map<String, String> environment,
      Class<?> main,
      String... arguments)
      throws IOException {
    // The files of the two streams lie outside this folder, because they are open while tests
    // count open files. The name is short, because the path of a socket has at most 107 bytes.
    Path folder = Files.createDirectory(temporary.resolve("t"));
    List<String> all = new ArrayList<>(options);
    all.addAll(
        List.of(
            "--illegal-native-access=deny", "-Dai.djl.offline=true", "-Djava.io.tmpdir=" + folder));
    ProcessBuilder builder = command(all, main, (Object[]) arguments);
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
