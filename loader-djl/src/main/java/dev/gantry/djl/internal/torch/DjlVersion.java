// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import ai.djl.engine.Engine;
import ai.djl.pytorch.engine.PtEngine;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.module.ModuleDescriptor.Version;
import java.util.Optional;
import java.util.Properties;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Finds which version of DJL is on the class path. An older version may load, but its private
/// fields and native code may differ from those that this package uses.
final class DjlVersion {
  private static final Version LEAST = Version.parse("0.35.1");
  private static final Pattern VERSION = Pattern.compile("\\d+(\\.\\d+)*(-[A-Za-z0-9]+)*");

  private DjlVersion() {}

  /// Returns in one line why the present version of DJL is refused; empty if it is accepted. A jar
  /// without a version is accepted, because programs that repackage DJL may leave the version out.
  static Optional<String> refusal() {
    return Stream.of(
            refusal("ai.djl:api", Engine.class, "api.properties"),
            refusal("ai.djl.pytorch:pytorch-engine", PtEngine.class, "/pytorch-engine.properties"))
        .flatMap(Optional::stream)
        .findFirst();
  }

  private static Optional<String> refusal(String jar, Class<?> of, String resource) {
    try (InputStream in = of.getResourceAsStream(resource)) {
      Properties properties = new Properties();
      if (in != null) {
        properties.load(in);
      }
      return Optional.ofNullable(properties.getProperty("djl_version"))
          .filter(found -> VERSION.matcher(found).matches())
          .filter(found -> Version.parse(found).compareTo(LEAST) < 0)
          .map(found -> jar + " must be of DJL " + LEAST + " or newer (was " + found + ")");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
