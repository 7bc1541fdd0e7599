// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.protobuf;

import dev.gantry.core.MisuseException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.module.ModuleDescriptor.Version;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLConnection;
import java.util.Optional;
import java.util.jar.Manifest;
import java.util.regex.Pattern;

/// Checks the version of protobuf-java on the class path: a BOM or another library may have chosen an older
/// one, whose classes fail when they are first used. The check runs once, and does not use the generated
/// message classes.
public final class ProtobufVersion {
  /// The version that compiled our messages: `protoc.version` in the parent pom.
  static final String LEAST = "4.33.1";

  private static final String LEAST_WITHOUT_UNSAFE = "4.34.0";
  private static final Pattern VERSION = Pattern.compile("\\d+(\\.\\d+)*");
  private static final String PACKAGE = "com.google.protobuf.";

  private static final Optional<String> READER_FAULT = readerFault();
  private static final Optional<String> MESSAGES_FAULT = messagesFault();

  private ProtobufVersion() {}

  /// Checks for code that uses `CodedInputStream` alone, which has not changed for years.
  ///
  /// @throws MisuseException if this protobuf-java needs access that this JVM forbids
  public static void requireReader() {
    refuse(READER_FAULT);
  }

  /// Checks for code that uses Gantry's generated message classes.
  ///
  /// @throws MisuseException if the messages need a newer version, or this version needs access that this
  ///     JVM forbids
  public static void requireMessages() {
    refuse(MESSAGES_FAULT);
    refuse(READER_FAULT);
  }

  private static void refuse(Optional<String> fault) {
    if (fault.isPresent()) {
      throw new MisuseException(fault.get());
    }
  }

  private static Optional<String> readerFault() {
    try {
      Class.forName(PACKAGE + "UnsafeUtil");
      return Optional.empty();
    } catch (ClassNotFoundException _) {
      // Newer versions do without that access.
      return Optional.empty();
    } catch (ExceptionInInitializerError _) {
      return Optional.of(
          fault(
              LEAST_WITHOUT_UNSAFE,
              "where the JVM has the option --sun-misc-unsafe-memory-access=deny"));
    }
  }

  /// Says why the messages cannot be used. A jar without a version passes, since repackaged jars may lack
  /// it, unless it is too old to have a version check of its own.
  private static Optional<String> messagesFault() {
    boolean checks = true;
    try {
      Class.forName(PACKAGE + "RuntimeVersion", false, ProtobufVersion.class.getClassLoader());
    } catch (ClassNotFoundException _) {
      checks = false;
    }
    boolean isOld =
        version()
            .filter(found -> VERSION.matcher(found).matches())
            .filter(found -> Version.parse(found).compareTo(Version.parse(LEAST)) < 0)
            .isPresent();
    return isOld || !checks ? Optional.of(fault(LEAST, "for tf.train.Example")) : Optional.empty();
  }

  private static String fault(String least, String where) {
    return "com.google.protobuf:protobuf-java must be "
        + least
        + " or newer "
        + where
        + " (was "
        + version().orElse("one that does not tell its version")
        + "): name the version in your build";
  }

  private static Optional<String> version() {
    URL some = ProtobufVersion.class.getResource("/com/google/protobuf/MessageLite.class");
    if (some == null) {
      return Optional.empty();
    }
    try {
      URLConnection connection = some.openConnection();
      if (!(connection instanceof JarURLConnection jar)) {
        return Optional.empty();
      }
      Manifest manifest = jar.getManifest();
      return Optional.ofNullable(manifest)
          .map(found -> found.getMainAttributes().getValue("Bundle-Version"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
