// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Names that stand for several files, as shells write them: `train-{000..127}.tar`, `{train,extra}.tar`,
/// `part-*.tar`.
public final class NamePatterns {
  /// The most files that one name may stand for.
  static final int MAX_FILES = 1_000_000;

  /// The most digits of a number in braces.
  private static final String NUMBER = "(\\d{1,9})";

  private static final Pattern RANGE = Pattern.compile(NUMBER + "\\.\\." + NUMBER);

  private NamePatterns() {}

  /// Returns the files that a name stands for, in order: those of braces in the order in which they are
  /// written, and those of `*` and `?` in the last part of a path, ordered by name. A local file or folder of
  /// just this name is that file or folder.
  ///
  /// @param option that names the files, for errors
  /// @throws MisuseException if no file has such a name, or a store cannot list files
  public static List<Location> expand(GantrySession session, String option, String name) {
    if (Location.of(name) instanceof Location.Local(Path path, _) && Files.exists(path)) {
      return List.of(Location.of(path));
    }
    List<String> names = new ArrayList<>();
    addBraces(option, name, names);
    List<Location> files = new ArrayList<>();
    for (String each : names) {
      String last = each.substring(each.lastIndexOf('/') + 1);
      if (last.indexOf('*') >= 0 || last.indexOf('?') >= 0) {
        files.addAll(matching(session, option, each, last));
      } else {
        files.add(Location.of(each));
      }
    }
    return files;
  }

  /// Adds all names, each with one alternative of every pair of braces.
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
      int digits = range.group(1).length();
      for (int i = from; i <= to; i++) {
        addBraces(
            option, before + String.format(Locale.ROOT, "%0" + digits + "d", i) + after, names);
      }
    } else {
      for (String alternative : within.split(",", -1)) {
        addBraces(option, before + alternative + after, names);
      }
    }
  }

  private static List<Location> matching(
      GantrySession session, String option, String name, String last) {
    String parent = name.substring(0, name.length() - last.length());
    List<Location> found =
        Folder.at(session, Location.of(parent.isEmpty() ? "." : parent)).stream()
            .flatMap(folder -> folder.files().stream())
            .filter(file -> regex(last).matcher(file.fileName()).matches())
            .toList();
    if (found.isEmpty()) {
      throw new MisuseException(option + " is " + name + "; there is no such file");
    }
    return found;
  }

  private static Pattern regex(String glob) {
    StringBuilder regex = new StringBuilder();
    glob.chars()
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
