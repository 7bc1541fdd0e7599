// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.cli.internal.output.StandardOutput;
import dev.gantry.cli.internal.process.Termination;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cache.CacheSettings;
import dev.gantry.samples.demo.CheckFailedException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

/// The command line. Results go to standard output, and everything else to standard error. An
/// error is one line on standard error.
@Command(
    name = "gantry",
    description = "Moves tensors between files and GPU memory at the speed of the hardware.",
    mixinStandardHelpOptions = true,
    versionProvider = Version.class,
    scope = ScopeType.INHERIT,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      " 0:success",
      " 1:an index is not usable, or tensors differ",
      "64:usage",
      "65:malformed input",
      "66:no such input",
      "69:device not available",
      "70:a check failed, or a defect in Gantry",
      "74:I/O error"
    },
    subcommands = {
      DoctorCommand.class,
      InspectCommand.class,
      DigestCommand.class,
      LoadCommand.class,
      AnswerCommand.class,
      MapCommand.class,
      ConvertCommand.class,
      IndexCommand.class,
      CheckpointsCommand.class,
      BenchCommand.class,
      ServeWeightsCommand.class,
      DemoCommand.class
    })
public final class GantryCommand {
  static final int EXIT_USAGE = 64;
  static final int EXIT_MALFORMED = 65;
  static final int EXIT_NO_INPUT = 66;
  static final int EXIT_UNAVAILABLE = 69;
  static final int EXIT_SOFTWARE = 70;
  static final int EXIT_IO = 74;

  /// The errors of opening a name that leads to no file. ELOOP is the error of symbolic links
  /// that form a cycle.
  private static final Set<String> NO_SUCH_FILE = Set.of("ENOENT", "ELOOP");

  @Option(
      names = "--verbose",
      description = "Print the stack trace of an error.",
      scope = ScopeType.INHERIT)
  private boolean verbose;

  GantryCommand() {}

  @Option(
      names = "--cache-folder",
      paramLabel = "FOLDER",
      description = "Keep remote files in this folder; ${env:GANTRY_CACHE:-none} by default.",
      scope = ScopeType.INHERIT)
  void cacheFolder(Path folder) {
    System.setProperty(CacheSettings.PROPERTY, folder.toString());
  }

  @Option(
      names = "--cache-bytes",
      paramLabel = "N",
      description =
          "Keep at most N bytes in the cache folder; N may end in MB, GB or TB. The default is half"
              + " of the disk.",
      scope = ScopeType.INHERIT)
  void cacheBytes(String bytes) {
    System.setProperty(CacheSettings.BYTES_PROPERTY, bytes);
  }

  static void main(String[] arguments) {
    System.exit(Termination.guard(() -> run(arguments)));
  }

  /// Runs one command line.
  ///
  /// @return the exit code
  static int run(String... arguments) {
    StandardOutput out = new StandardOutput();
    return run(
        out.writer(),
        new PrintWriter(System.err, true, System.err.charset()),
        out::failure,
        arguments);
  }

  /// Runs one command line that prints to the caller's writers.
  ///
  /// @return the exit code
  public static int run(PrintWriter out, PrintWriter err, String... arguments) {
    return run(out, err, () -> "the output refused further text", arguments);
  }

  /// @param refusal returns why `out` did not accept all that was printed
  private static int run(
      PrintWriter out, PrintWriter err, Supplier<String> refusal, String... arguments) {
    GantryCommand gantry = new GantryCommand();
    int code = gantry.run(new CommandLine(gantry).setOut(out).setErr(err), arguments);
    // Everything has been printed here.
    if (out.checkError() && code == 0) {
      err.println("gantry: standard output is incomplete: " + refusal.get());
      return EXIT_IO;
    }
    return code;
  }

  private int run(CommandLine commands, String... arguments) {
    commands.setCaseInsensitiveEnumValuesAllowed(true);
    commands.registerConverter(Location.class, text -> parsed(Location::of, text));
    commands.registerConverter(Device.class, text -> parsed(Device::parse, text));
    commands.registerConverter(Path.class, GantryCommand::path);
    commands.registerConverter(int.class, text -> (int) number(text, Integer.MAX_VALUE));
    commands.registerConverter(Integer.class, text -> (int) number(text, Integer.MAX_VALUE));
    commands.registerConverter(long.class, text -> number(text, Long.MAX_VALUE));
    commands.registerConverter(Long.class, text -> number(text, Long.MAX_VALUE));
    commands.setParameterExceptionHandler((e, _) -> {
      CommandLine command = e.getCommandLine();
      String hint =
          command.getSubcommands().isEmpty()
              ? ""
              : "; ./" + command.getCommandSpec().qualifiedName() + " --help lists the commands";
      e.getCommandLine().getErr().println("gantry: " + oneLine(e) + hint);
      return EXIT_USAGE;
    });
    commands.setExecutionExceptionHandler((e, command, _) -> {
      command
          .getErr()
          .println("gantry: " + (Termination.hasBegun() ? "ended by a signal" : oneLine(e)));
      if (verbose) {
        e.printStackTrace(command.getErr());
      }
      return exitCode(e);
    });
    try {
      return commands.execute(arguments);
    } catch (OutOfMemoryError e) {
      commands
          .getErr()
          .println(
              "gantry: the Java heap of "
                  + (Runtime.getRuntime().maxMemory() >> 20)
                  + " MiB is too small for this ("
                  + e.getMessage()
                  + "); GANTRY_JAVA_OPTS=-Xmx2g gives it 2 GiB");
      return EXIT_SOFTWARE;
    }
  }

  private static <T> T parsed(Function<String, T> parser, String text) {
    try {
      return parser.apply(text);
    } catch (MisuseException e) {
      throw new TypeConversionException(e.getMessage());
    }
  }

  private static long number(String text, long most) {
    try {
      long number = Long.parseLong(text);
      if (number >= -most && number <= most) {
        return number;
      }
    } catch (NumberFormatException _) {
      // Text that is not a number is refused below, together with numbers out of range.
    }
    throw new TypeConversionException(
        "must be a whole number, at most " + most + " (was " + text + ")");
  }

  private static Path path(String text) {
    if (parsed(Location::of, text) instanceof Location.Local(Path path, _)) {
      return path;
    }
    throw new TypeConversionException("must be a local path (was " + text + ")");
  }

  private static String oneLine(Exception e) {
    String message =
        switch (e) {
          case GantryException known -> known.getMessage();
          case UnmatchedArgumentException more -> inWords(more);
          case ParameterException usage -> usage.getMessage();
          case WrongBytesException wrong -> wrong.getMessage();
          case CheckFailedException failed -> failed.getMessage();
          case UncheckedIOException wrapped -> inWords(wrapped);
          case IOException io -> inWords(io);
          default -> e.toString();
        };
    return String.valueOf(message).lines().findFirst().orElse("");
  }

  private static String inWords(UnmatchedArgumentException more) {
    CommandLine command = more.getCommandLine();
    String first = more.getUnmatched().getFirst();
    if (more.isUnknownOption()) {
      // Picocli's own message would also list the arguments after the unknown option as unknown.
      return "Unknown option: '" + first + "'";
    }
    if (first.isEmpty()) {
      return "an argument of " + command.getCommandName() + " is empty";
    }
    return command.getSubcommands().isEmpty()
        ? command.getCommandName() + " takes no more arguments (was '" + first + "')"
        : "there is no command '" + first + "'";
  }

  /// Describes an I/O error with what failed, if the wrapping exception has a message of its own.
  private static String inWords(UncheckedIOException wrapped) {
    IOException cause = Objects.requireNonNull(wrapped.getCause());
    String words = inWords(cause);
    String own = wrapped.getMessage();
    return own == null || own.equals(cause.toString()) ? words : own + ": " + words;
  }

  /// Describes an I/O error. The message of a JDK exception is often only the file's name; the
  /// exception's class then tells the cause.
  private static String inWords(IOException e) {
    return e.getClass() == IOException.class
        ? String.valueOf(e.getMessage())
        : e.getClass().getSimpleName() + ": " + e.getMessage();
  }

  private static int exitCode(Exception e) {
    return switch (e) {
      case MalformedFileException _ -> EXIT_MALFORMED;
      case DeviceUnavailableException _ -> EXIT_UNAVAILABLE;
      case MisuseException _ -> EXIT_USAGE;
      case TransferException transfer ->
          switch (transfer.failure()) {
            case Failure.Errno _ when transfer.isErrno(NO_SUCH_FILE) -> EXIT_NO_INPUT;
            case Failure.Remote(int status, _) when status == 404 || status == 410 -> EXIT_NO_INPUT;
            default -> EXIT_IO;
          };
      case UncheckedIOException _, IOException _ -> EXIT_IO;
      default -> EXIT_SOFTWARE;
    };
  }
}
