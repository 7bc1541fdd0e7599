package dev.gantry.samples;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;

/// The `gantry` command line, which `./gantry` at the root starts.
@Command(
    name = "gantry",
    description = "Moves tensors between files and GPU memory at the speed of the hardware.",
    mixinStandardHelpOptions = true,
    versionProvider = Gantry.Version.class,
    exitCodeOnInvalidInput = Gantry.USAGE)
public final class Gantry {
  /// The exit code of a command line that cannot be understood: `EX_USAGE` of `sysexits.h`.
  static final int USAGE = 64;

  private Gantry() {}

  /// Runs one command and ends the JVM with its exit code.
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new Gantry()).execute(arguments));
  }

  /// The version in the manifest of the jar.
  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      String version = Gantry.class.getPackage().getImplementationVersion();
      return new String[] {"gantry " + (version == null ? "(not built as a jar)" : version)};
    }
  }
}
