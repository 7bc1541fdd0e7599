// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.benchmarks.bench.Bench;
import dev.gantry.benchmarks.bench.Settings;
import dev.gantry.benchmarks.page.Page;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.ResultJson;
import dev.gantry.cli.internal.output.BenchTable;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.process.TemporaryFolder;
import dev.gantry.cli.internal.process.Termination;
import dev.gantry.core.Device;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `bench`: measures the ceilings of this machine, and how near Gantry and its peers come to them,
/// in one run.
@Command(
    name = "bench",
    description =
        "Measures this machine's ceilings, Gantry and its peers in turns; prints a table, and"
            + " writes JSON and a page with charts.")
final class BenchCommand implements Callable<Integer> {
  private static final int MAX_MIB = 1 << 20;
  private static final int SECONDS = 200;
  private static final int GPU_SECONDS = 420;
  private static final int QUICK_SECONDS = 50;

  @Spec private CommandSpec spec;

  @Option(
      names = "--out",
      paramLabel = "FOLDER",
      description =
          "The folder for bench.json and bench.html; the folder is made if it does not exist.")
  private @Nullable Path out;

  @Option(
      names = "--folder",
      paramLabel = "FOLDER",
      description =
          "The folder in which temporary files for the measurements are made and deleted; by"
              + " default, the system's temporary folder.")
  private @Nullable Path folder;

  @Option(
      names = "--file",
      paramLabel = "FILE",
      description = "A safetensors file to load instead of files of random bytes.")
  private @Nullable Path file;

  @Mixin private DeviceOption device;

  @Option(
      names = "--quick",
      description = "Measure fewer points with fewer repeats, within a minute.")
  private boolean quick;

  @Option(
      names = "--size-mib",
      paramLabel = "N",
      split = ",",
      description = "The sizes of the files to make; by default chosen for the machine.")
  private List<Integer> sizes = List.of();

  @Option(
      names = "--repeats",
      paramLabel = "N",
      description =
          "The number of runs of each point, if the time budget allows; 5 by default, 3 with"
              + " --quick.")
  private @Nullable Integer repeats;

  @Option(
      names = "--seconds",
      paramLabel = "N",
      description =
          "The time budget: after N seconds no measurement begins, and the report names those left"
              + " out; "
              + SECONDS
              + " by default, "
              + GPU_SECONDS
              + " on a GPU, "
              + QUICK_SECONDS
              + " with --quick.")
  private @Nullable Integer seconds;

  @Option(
      names = "--from",
      paramLabel = "JSON",
      description = "Draw the page of this bench.json again, without measuring.")
  private @Nullable Path from;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  @Override
  public Integer call() throws Exception {
    check();
    if (from == null) {
      measure();
    } else {
      report(read(from));
    }
    return 0;
  }

  private static Result read(Path from) {
    try {
      return ResultJson.read(Files.readString(from));
    } catch (IllegalArgumentException | CharacterCodingException e) {
      throw new MalformedFileException(
          from, 0, "invalid-bench", "--from must be a bench.json: " + e.getMessage());
    } catch (IOException e) {
      throw FileErrors.of("read", from.toString(), e);
    }
  }

  private void report(Result result) throws IOException {
    PrintWriter printer = spec.commandLine().getOut();
    write(result);
    if (json) {
      printer.println(ResultJson.text(result));
      printer.flush();
    } else {
      BenchTable.print(result, printer);
      if (out != null) {
        printer.println("page: " + out.resolve(Page.FILE) + ", data: " + out.resolve(Page.DATA));
        printer.flush();
      }
    }
  }

  /// @throws MisuseException if an option has a wrong value
  private void check() {
    if (out != null) {
      try {
        Files.createDirectories(out);
      } catch (IOException _) {
        throw new MisuseException(
            "--out must be a folder that exists or can be made (was " + out + ")");
      }
    }
    if (folder != null && !Files.isDirectory(folder)) {
      throw new MisuseException("--folder must be a folder (was " + folder + ")");
    }
    for (int size : sizes) {
      MisuseException.requireRange("--size-mib", size, 1, MAX_MIB);
    }
    if (repeats != null) {
      MisuseException.requireRange("--repeats", repeats, 1, 1000);
    }
    if (seconds != null) {
      MisuseException.requireRange("--seconds", seconds, 1, 86_400);
    }
    if (file != null && !sizes.isEmpty()) {
      throw new MisuseException("--size-mib cannot be combined with --file (was " + sizes + ")");
    }
    boolean measures =
        file != null
            || folder != null
            || quick
            || !sizes.isEmpty()
            || repeats != null
            || seconds != null
            || device.isChosen();
    if (from != null && measures) {
      throw new MisuseException(
          "--from cannot be combined with --file, --folder, --quick, --size-mib, --repeats,"
              + " --seconds or --device (was "
              + from
              + ")");
    }
  }

  private void measure() throws Exception {
    try (TemporaryFolder work = TemporaryFolder.create("gantry-bench-", folder, false);
        Progress progress = Progress.ofSteps("bench", 1);
        Bench bench = new Bench(settings(work.path()), progress, progress::say)) {
      // If the command is terminated, a shutdown hook reports the results so far, because a run
      // may ignore interrupts.
      Thread hook = new Thread(() -> reportSoFar(bench), "gantry-bench-report");
      Runtime.getRuntime().addShutdownHook(hook);
      boolean goesOn;
      Result result;
      try {
        result = bench.run();
      } finally {
        goesOn = Termination.removeHook(hook);
      }
      if (goesOn) {
        report(result);
      }
    }
  }

  private void reportSoFar(Bench bench) {
    try {
      Optional<Result> result = bench.soFar("the command was ended by a signal");
      if (result.isPresent()) {
        report(result.get());
      }
    } catch (IOException e) {
      spec.commandLine().getErr().println("gantry: " + e);
    }
  }

  private Settings settings(Path work) {
    return new Settings(
        work,
        file,
        sizes.stream().map(size -> (long) size << 20).toList(),
        device.device(),
        quick,
        repeats != null ? repeats : quick ? 3 : 5,
        seconds != null ? seconds : budget(device.device()),
        new Version().getVersion()[0],
        "gantry "
            + String.join(" ", spec.commandLine().getParent().getParseResult().originalArgs()));
  }

  private int budget(Device target) {
    return switch (target) {
      case Device.Host _ -> quick ? QUICK_SECONDS : SECONDS;
      case Device.Cuda _ -> quick ? QUICK_SECONDS : GPU_SECONDS;
    };
  }

  private void write(Result result) throws IOException {
    if (out != null) {
      Files.writeString(out.resolve(Page.DATA), ResultJson.text(result));
      Files.writeString(out.resolve(Page.FILE), Page.of(result));
    }
  }
}
