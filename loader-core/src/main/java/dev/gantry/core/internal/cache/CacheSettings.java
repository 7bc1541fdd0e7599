// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The folder of a cache, and the most bytes that its files may take.
public record CacheSettings(Path folder, long mostBytes) {
  /// The system property that names the folder of a cache for all sessions.
  public static final String PROPERTY = "gantry.cache";

  /// The environment variable with the same meaning. The system property has precedence.
  public static final String VARIABLE = "GANTRY_CACHE";

  /// The system property for the most bytes that this cache may take. The default is half of the
  /// file system.
  public static final String BYTES_PROPERTY = "gantry.cache.bytes";

  public static final String BYTES_VARIABLE = "GANTRY_CACHE_BYTES";

  private static final Logger LOG = LoggerFactory.getLogger(CacheSettings.class);
  private static final Pattern BYTES = Pattern.compile("(\\d{1,15}) ?(MB|GB|TB)?");
  private static final Map<String, Long> UNITS =
      Map.of("MB", 1_000_000L, "GB", 1_000_000_000L, "TB", 1_000_000_000_000L);

  public CacheSettings {
    MisuseException.requireRange("the cache's bytes", mostBytes, 1, Long.MAX_VALUE);
    Folders.requireMakeable(MisuseException.requireGiven("folder", folder));
    folder = folder.toAbsolutePath().normalize();
  }

  /// Returns the settings from the properties and variables of this process; empty if they name no folder.
  ///
  /// @throws MisuseException if the setting for bytes is not a number of bytes, even without a folder
  public static Optional<CacheSettings> ofProcess() {
    Optional<Long> bytes = setting(BYTES_PROPERTY, BYTES_VARIABLE).map(CacheSettings::bytes);
    Optional<String> chosen = setting(PROPERTY, VARIABLE);
    if (bytes.isPresent() && chosen.isEmpty()) {
      LOG.warn(
          "--cache-bytes ({}) has no effect without --cache-folder ({}): remote files are not kept",
          BYTES_VARIABLE,
          VARIABLE);
    }
    return chosen
        .map(Path::of)
        .map(folder -> new CacheSettings(folder, bytes.orElseGet(() -> half(folder))));
  }

  private static Optional<String> setting(String property, String variable) {
    String given = System.getProperty(property);
    return Optional.ofNullable(given == null ? System.getenv(variable) : given)
        .filter(value -> !value.isEmpty());
  }

  static long bytes(String text) {
    Matcher number = BYTES.matcher(text);
    if (number.matches()) {
      @Nullable String unit = number.group(2);
      long bytes = unit == null ? 1 : Objects.requireNonNull(UNITS.get(unit));
      long count = Long.parseLong(number.group(1));
      if (count > 0 && count <= Long.MAX_VALUE / bytes) {
        return count * bytes;
      }
    }
    throw new MisuseException(
        "--cache-bytes ("
            + BYTES_VARIABLE
            + ") must be a number of bytes, MB, GB or TB, and more than 0 (was "
            + text
            + ")");
  }

  private static long half(Path folder) {
    try {
      Path there = folder.toAbsolutePath();
      while (!Files.exists(there)) {
        there = Objects.requireNonNull(there.getParent());
      }
      return Math.max(1, Files.getFileStore(there).getTotalSpace() / 2);
    } catch (IOException e) {
      throw FileErrors.of("statfs", folder.toString(), e);
    }
  }
}
