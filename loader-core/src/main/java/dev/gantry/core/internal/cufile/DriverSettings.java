// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.CuFileConfig;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.OwnFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Opens this process's one cuFile driver with the settings of a session. libcufile reads settings when its
/// first user opens the driver, from the file that [#VARIABLE] names then. So this class does the following:
///
/// 1. write the settings to a file that only this user can read
/// 2. name it in the environment
/// 3. open the driver
/// 4. put the environment back
/// 5. when the last session closes the driver, delete the file
///
/// If [#VARIABLE] was set when the process started, it stays as it is: the user's setting wins. Thread-safe.
public final class DriverSettings {
  /// The environment variable that names libcufile's settings file.
  public static final String VARIABLE = "CUFILE_ENV_PATH_JSON";

  /// The system property that names a settings file for sessions that have no settings of their own.
  public static final String PROPERTY = "gantry.cufile.json";

  /// The file that libcufile reads if no setting names another file.
  private static final Path DEFAULT = Path.of("/etc/cufile.json");

  /// The file that libcufile reads for a session without settings of its own.
  ///
  /// @param by the setting that names the file: [#VARIABLE] or [#PROPERTY]; empty for libcufile's
  ///     own choice
  public record Choice(String by, Path file) {}

  /// The reason why a session cannot open the driver now.
  public static final String OTHERS =
      "other code of this process has cuFile's driver open with other settings";

  private static final Logger LOG = LoggerFactory.getLogger(DriverSettings.class);

  /// The number of sessions that have the driver open.
  private static int users;

  private static @Nullable CuFileConfig inForce;
  private static @Nullable Path file;

  private DriverSettings() {}

  /// Opens the driver with these settings.
  ///
  /// @param wanted the settings; null for the settings in force, or libcufile's defaults if none
  ///     are
  /// @param cuFile the library, whose driver other code of this process may have open
  /// @param driver opens the driver, once
  /// @return the library; or the reason why it is absent, if the driver is open with other
  ///     settings or `driver` could not open it
  public static synchronized <T> Availability<T> open(
      @Nullable CuFileConfig wanted, CuFile cuFile, Supplier<Availability<T>> driver) {
    if (users == 0 && wanted != null && isOpen(cuFile)) {
      return Availability.absent(OTHERS);
    }
    if (users > 0 && wanted != null && !Objects.equals(wanted, inForce)) {
      return Availability.absent(OTHERS);
    }
    Availability<T> opened = users > 0 ? driver.get() : openFirst(wanted, driver);
    if (opened instanceof Availability.Present<T>) {
      users++;
    }
    return opened;
  }

  /// Whether the driver is open in this process, whoever opened it.
  static boolean isOpen(CuFile cuFile) {
    return cuFile.useCount().toOptional().orElse(0L) > 0;
  }

  private static <T> Availability<T> openFirst(
      @Nullable CuFileConfig wanted, Supplier<Availability<T>> driver) {
    String given = System.getenv(VARIABLE);
    String named = named(wanted);
    if (given != null && named != null) {
      LOG.warn("{} is set to {}: libcufile reads that, and not {}", VARIABLE, given, named);
      named = null;
    } else if (wanted != null) {
      try {
        named = write(wanted.json()).toString();
      } catch (IOException e) {
        forget();
        return Availability.absent("a file of cuFile's settings cannot be written: " + e);
      }
    }
    Availability<T> opened = Availability.absent("not opened");
    try {
      opened = named == null ? driver.get() : openNaming(named, driver);
    } finally {
      if (opened instanceof Availability.Absent<T>) {
        forget();
      }
    }
    inForce = wanted;
    return opened;
  }

  /// Writes the settings to a file that no other user can read. It lies in a temporary folder of its own, and both are
  /// deleted by [#forget], or at the latest when the JVM ends.
  private static Path write(String json) throws IOException {
    Path folder = Files.createTempDirectory("gantry-");
    Path written = folder.resolve("cufile.json");
    file = written;
    // The JVM deletes both in reverse order when it ends: the file first, then its folder.
    folder.toFile().deleteOnExit();
    written.toFile().deleteOnExit();
    OwnFiles.write(written, json);
    return written;
  }

  /// Returns the name of the file that libcufile should read, or a description of a session's
  /// settings; null for libcufile's own choice.
  private static @Nullable String named(@Nullable CuFileConfig wanted) {
    if (wanted != null) {
      return "the session's own settings";
    }
    String property = System.getProperty(PROPERTY);
    if (property != null && !Files.isReadable(Path.of(property))) {
      LOG.warn("{} is {}, which cannot be read", PROPERTY, property);
      return null;
    }
    return property;
  }

  /// Returns the file for a session without settings of its own; empty if there is none.
  public static Optional<Choice> choice() {
    String given = System.getenv(VARIABLE);
    String property = System.getProperty(PROPERTY);
    if (given != null) {
      return Optional.of(new Choice(VARIABLE, Path.of(given)));
    }
    return property != null
        ? Optional.of(new Choice(PROPERTY, Path.of(property)))
        : Optional.of(new Choice("", DEFAULT)).filter(own -> Files.exists(own.file()));
  }

  /// Returns the text of the file that libcufile would read for a session; empty if there is none, or
  /// it cannot be read.
  ///
  /// @param wanted the session's settings; null for libcufile's own
  static String text(@Nullable CuFileConfig wanted) {
    if (wanted != null && System.getenv(VARIABLE) == null) {
      return wanted.json();
    }
    return choice()
        .map(choice -> {
          try {
            return Files.readString(choice.file());
          } catch (IOException _) {
            return "";
          }
        })
        .orElse("");
  }

  private static <T> Availability<T> openNaming(String name, Supplier<Availability<T>> driver) {
    Libc.setEnvironment(VARIABLE, name);
    try {
      return driver.get();
    } finally {
      Libc.setEnvironment(VARIABLE, null);
    }
  }

  private static void forget() {
    Path old = file;
    file = null;
    inForce = null;
    if (old != null) {
      try {
        Files.deleteIfExists(old);
        Files.deleteIfExists(Objects.requireNonNull(old.getParent()));
      } catch (IOException e) {
        throw new UncheckedIOException("cuFile's settings cannot be deleted: " + old, e);
      }
    }
  }

  /// Ends a session's use of the driver, which [#open] began.
  ///
  /// @param driver closes the driver
  public static synchronized void close(Runnable driver) {
    users--;
    try {
      driver.run();
    } finally {
      if (users == 0) {
        forget();
      }
    }
  }
}
