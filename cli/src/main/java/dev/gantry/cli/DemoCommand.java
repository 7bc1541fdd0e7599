// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import ai.djl.translate.TranslateException;
import dev.gantry.cli.internal.process.TemporaryFolder;
import dev.gantry.core.MisuseException;
import dev.gantry.samples.demo.Demo;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `demo`: runs [Demo] in a temporary folder.
@Command(
    name = "demo",
    description =
        "Makes weights in a temporary folder, loads and checks them, kills trainings and resumes"
            + " them.")
final class DemoCommand implements Callable<Integer> {
  @Spec private CommandSpec spec;

  @Option(
      names = "--dir",
      paramLabel = "FOLDER",
      description =
          "The folder in which the demo makes a folder of its own; by default, the system's"
              + " temporary folder.")
  private @Nullable Path parent;

  @Option(
      names = "--bytes",
      paramLabel = "N",
      defaultValue = "2000000000",
      description = "The approximate size of the weights in bytes; ${DEFAULT-VALUE} by default.")
  private long bytes;

  @Option(names = "--keep", description = "Keep the temporary folder.")
  private boolean keep;

  @Override
  public Integer call() throws IOException, TranslateException {
    MisuseException.requireRange("--bytes", bytes, Demo.MIN_BYTES, Long.MAX_VALUE);
    if (parent != null && !Files.isDirectory(parent)) {
      throw new MisuseException("--dir must be a folder (was " + parent + ")");
    }
    PrintWriter out = spec.commandLine().getOut();
    try (TemporaryFolder folder = TemporaryFolder.create("gantry-demo-", parent, keep)) {
      Demo.run(folder.path(), bytes, out);
      out.println(folder.path() + (keep ? " is kept." : " is deleted."));
    }
    return 0;
  }
}
