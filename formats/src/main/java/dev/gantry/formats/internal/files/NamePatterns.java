// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Expands names that stand for several files, in the shell's syntax: `train-{000..127}.tar`,
/// `{train,extra}.tar`, `part-*.tar`.
public final class NamePatterns {
  /// The suffix of an index's name; the indexed file's name comes before it.
  public static final String INDEX_SUFFIX = ".gantry-index";

  /// The most files that one name may stand for.
  static final int MAX_FILES = 1_000_000;

  /// The most digits of a number in braces.
  private static final String NUMBER = "(\\d{1,9})";

  private static final Pattern RANGE = Pattern.compile(NUMBER + "\\.\\." + NUMBER);

  private NamePatterns() {}

  /// Returns the files that names stand for, in order: those of braces in the order in which they
  /// are written, and those of `*` and `?` in the last part of a path, ordered by name. If a
  /// local file or folder has exactly this name, the name stands for it alone. Names that begin
  /// with `.` or `_`, and the names of indexes, match no `*` or `?` at the beginning; in a URL of
  /// the web, `?` begins the query.
  ///
  /// @param folders whether patterns stand for local folders, too
  /// @param option the option that gives the names, for errors
  /// @throws MisuseException if no file has such a name, or a store cannot list files
  public static List<Location> expand(
      GantrySession session, String option, List<String> names, boolean folders) {
    return names.stream().flatMap(name -> expand(session, option, name, folders).stream()).toList();
  }

  private static List<Location> expand(
      GantrySession session, String option, String name, boolean folders) {
    boolean remote = name.contains("://");
    if (remote && name.startsWith("http") && name.contains("?")) {
      return List.of(Location.of(name));
    }
    if (!remote
        && Location.of(name) instanceof Location.Local(Path path, _)
        && Files.exists(path)) {
      return List.of(Location.of(path));
    }
    List<String> names = new ArrayList<>();
    addBraces(option, name, names);
    List<Location> files = new ArrayList<>();
    for (String each : names) {
      String last = each.substring(each.lastIndexOf('/') + 1);
      if (last.indexOf('*') >= 0 || last.indexOf('?') >= 0) {
        files.addAll(matching(session, option, each, last, folders));
      } else {
        files.add(Location.of(each));
      }
    }
    return files;
  }

  /// Adds all names that result from choosing one alternative of every pair of braces.
  private static void addBraces(String option, String name, List<String> names) {
    int open = name.indexOf('{');
    int close = open < 0 ? -1 : name.indexOf('}', open);
    if (close < 0) {
      if (names.size() == MAX_FILES) {
        throw new MisuseException(option + ": a name stands for more than " + MAX_FILES + " files");
      }
      names.add(name);
      return;
    }
    String before = name.substring(0, open);
    String within = name.substring(open + 1, close);
    String after = name.substring(close + 1);
    Matcher range = RANGE.matcher(within);
    if (range.matches()) {
      int from = Integer.parseInt(range.group(1));
      int to = Integer.parseInt(range.group(2));
      String form = "%0" + digits(range.group(1), range.group(2)) + "d";
      int step = from <= to ? 1 : -1;
      for (int i = from; i != to + step; i += step) {
        addBraces(option, before + String.format(Locale.ROOT, form, i) + after, names);
      }
    } else {
      for (String alternative : within.split(",", -1)) {
        addBraces(option, before + alternative + after, names);
      }
    }
  }

  /// Returns the fewest digits of a range's numbers: if one of its ends begins with a zero, all
  /// numbers are as long as the longer end.
  private static int digits(String from, String to) {
    boolean padded =
        Stream.of(from, to).anyMatch(number -> number.length() > 1 && number.startsWith("0"));
    return padded ? Math.max(from.length(), to.length()) : 1;
  }

  private static List<Location> matching(
      GantrySession session, String option, String name, String last, boolean folders) {
    String parent = name.substring(0, name.length() - last.length());
    Location location = Location.of(parent.isEmpty() ? "." : parent);
    Stream<Location> files =
        Folder.at(session, location).stream().flatMap(folder -> folder.files().stream());
    Stream<Location> below =
        folders && location instanceof Location.Local(Path path, _)
            ? FolderEntries.of(path).stream().filter(Files::isDirectory).map(Location::of)
            : Stream.empty();
    Pattern wanted = regex(last);
    List<Location> found =
        Stream.concat(files, below)
            .filter(file -> wanted.matcher(file.fileName()).matches())
            .filter(file -> !file.fileName().endsWith(INDEX_SUFFIX))
            .sorted(Comparator.comparing(Location::fileName))
            .toList();
    if (found.isEmpty()) {
      throw missing(option, name, "file");
    }
    return found;
  }

  /// @throws MisuseException if a local location has neither a file nor a folder
  public static void requireThere(String option, Location location) {
    if (location instanceof Location.Local(Path path, _) && Files.notExists(path)) {
      throw missing(option, path.toString(), "file or folder");
    }
  }

  private static MisuseException missing(String option, String name, String kind) {
    return new MisuseException(
        option + " is " + name + "; there is no such " + kind + FileErrors.whyMissing(name));
  }

  private static Pattern regex(String glob) {
    StringBuilder regex = new StringBuilder("*?".indexOf(glob.charAt(0)) < 0 ? "" : "(?![._])");
    glob.codePoints()
        .forEach(c ->
            regex.append(
                switch (c) {
                  case '*' -> ".*";
                  case '?' -> ".";
                  default -> Pattern.quote(Character.toString(c));
                }));
    return Pattern.compile(regex.toString(), Pattern.DOTALL);
  }
}
