// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import dev.gantry.core.MisuseException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/// The options that a program sets on a data source by `option(…)`. Their names are
/// case-insensitive.
public final class SourceOptions {
  /// Matches the names of local files with their scheme.
  private static final Pattern LOCAL = Pattern.compile("file:(?://(?=/))?(?!//[^/])(.+)");

  private static final String SHAPE = "shape.";

  /// Stands for the shape options of all columns in a format's list of options.
  public static final String SHAPE_OF_COLUMN = SHAPE + "COLUMN";

  /// The options that Spark itself sets for `load(…)` and `save(…)`.
  private static final List<String> SPARKS = List.of("path", "paths");

  /// The option that Spark itself sets for `saveAsTable(…)`.
  private static final String OF_TABLES = "owner";

  private final CaseInsensitiveStringMap options;

  public SourceOptions(Map<String, String> options) {
    this.options = new CaseInsensitiveStringMap(options);
  }

  /// Refuses unknown options. Spark's own options are accepted: `path`, `paths`, and names with a
  /// dot, such as Hadoop's.
  ///
  /// @param format the format's name, for the message
  /// @param names the names of the format's options
  /// @throws MisuseException if any other option is given, such as a misspelt one
  public void requireKnown(String format, List<String> names) {
    for (String option : options.asCaseSensitiveMap().keySet()) {
      if (option.equals(OF_TABLES)) {
        throw new MisuseException(
            "saveAsTable is not supported by "
                + format
                + ", whose sets are folders: use save(path)");
      }
      boolean isKnown =
          SPARKS.stream().anyMatch(option::equalsIgnoreCase)
              || names.stream().anyMatch(option::equalsIgnoreCase)
              || (option.contains(".") && !isShape(option))
              || (names.contains(SHAPE_OF_COLUMN)
                  && option.regionMatches(true, 0, SHAPE, 0, SHAPE.length()));
      if (!isKnown) {
        throw new MisuseException(
            "'"
                + option
                + "' is not an option of "
                + format
                + "; its options are "
                + String.join(", ", names));
      }
    }
  }

  /// Whether an option sets a column's shape. Misspelt names count, too.
  private static boolean isShape(String option) {
    return option.toLowerCase(Locale.ROOT).startsWith("sha");
  }

  /// Returns the folder or file, which must be in a file system that the driver and all executors
  /// share.
  ///
  /// @throws MisuseException if there is no path, or it belongs to another kind of store
  public Path path() {
    String path = options.get("path");
    if (path == null || path.isEmpty()) {
      throw new MisuseException("name one path: load(path), save(path) or option path");
    }
    // As for Spark's own sources, the rest is the path as it is, without escapes.
    Matcher local = LOCAL.matcher(path);
    if (local.matches()) {
      return Path.of(local.group(1));
    }
    if (path.matches("[A-Za-z][A-Za-z0-9+.-]*://.*")) {
      throw new MisuseException(
          "path must be of a file system that the driver and all executors see (was " + path + ")");
    }
    return Path.of(path);
  }

  /// @throws MisuseException if the option is not a number, or is less than 1
  public long number(String name, long usual) {
    String text = options.get(name);
    if (text == null) {
      return usual;
    }
    try {
      long number = Long.parseLong(text.strip());
      MisuseException.requireRange("option " + name, number, 1, Long.MAX_VALUE);
      return number;
    } catch (NumberFormatException _) {
      throw new MisuseException("option " + name + " must be a number (was '" + text + "')");
    }
  }

  /// Returns the constant of an enumeration that the option names, in upper or lower case.
  ///
  /// @throws MisuseException if the option names no constant
  public <E extends Enum<E>> E choice(String name, Class<E> choices, E usual) {
    String text = options.get(name);
    if (text == null) {
      return usual;
    }
    for (E choice : choices.getEnumConstants()) {
      if (choice.name().equalsIgnoreCase(text.strip())) {
        return choice;
      }
    }
    throw new MisuseException(
        "option "
            + name
            + " must be one of "
            + Arrays.toString(choices.getEnumConstants())
            + " (was '"
            + text
            + "')");
  }

  /// @throws MisuseException if the option is neither `true` nor `false`
  public boolean flag(String name, boolean usual) {
    return choice(name, Flag.class, usual ? Flag.TRUE : Flag.FALSE) == Flag.TRUE;
  }

  private enum Flag {
    TRUE,
    FALSE
  }

  public Optional<String> text(String name) {
    return Optional.ofNullable(options.get(name));
  }

  /// Returns the shape of a column's values, such as `28,28`.
  ///
  /// @throws MisuseException if the option is not a list of numbers
  public Optional<List<Long>> shape(String column) {
    return text(SHAPE + column).map(text -> dimensions(SHAPE + column, text));
  }

  /// @throws MisuseException if a shape is set for a column that the schema lacks
  public void requireShapesOf(StructType schema) {
    List<String> columns =
        Arrays.stream(schema.fieldNames()).map(name -> name.toLowerCase(Locale.ROOT)).toList();
    for (String option : options.keySet()) {
      if (option.startsWith(SHAPE) && !columns.contains(option.substring(SHAPE.length()))) {
        throw new MisuseException(
            "option "
                + option
                + " names no column; the columns are "
                + Arrays.toString(schema.fieldNames()));
      }
    }
  }

  private static List<Long> dimensions(String name, String text) {
    List<Long> shape = new ArrayList<>();
    for (String dimension : text.split(",", -1)) {
      try {
        shape.add(Long.parseUnsignedLong(dimension.strip()));
      } catch (NumberFormatException _) {
        throw new MisuseException(
            "option " + name + " must be dimensions such as 28,28 (was '" + text + "')");
      }
    }
    return List.copyOf(shape);
  }
}
