// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.util.regex.Pattern;

/// Recognises names of files that only a shell or a store understands, or that this JVM cannot
/// express.
public final class FileNames {
  /// The encoding of the JVM's file names, which the locale decides.
  private static final String ENCODING = System.getProperty("sun.jnu.encoding", "UTF-8");

  /// A URL as a [java.nio.file.Path] has it, which joins slashes. `step:/x` is a path like any
  /// other, so only the schemes of stores count, Gantry's and those of Hadoop.
  private static final Pattern URL =
      Pattern.compile(
          "(?i)(s3[an]?|gs|az|abfss?|wasbs?|hdfs|hf|https?|ftp|file|gantry-resident):/.*");

  private FileNames() {}

  /// Whether a path's text is what is left of a URL, such as `s3:/bucket/key`; `./s3:/bucket/key`
  /// is a path.
  public static boolean isUrl(String name) {
    return URL.matcher(name).matches();
  }

  /// Returns a guess why there is no file of this name, as the end of an error message; empty if
  /// the name looks right.
  public static String whyMissing(String name) {
    if (("/" + name + "/").contains("/~/")) {
      return "; only shells take ~ for the home folder";
    }
    if (isUrl(name)) {
      return "; a Path holds no URL, and a path of this name begins with ./";
    }
    // The JVM replaces each byte of a name that it cannot decode by one of these characters.
    return !ENCODING.equals("UTF-8") && (name.indexOf('?') >= 0 || name.indexOf('\uFFFD') >= 0)
        ? "; this JVM takes names as " + ENCODING + ": set LC_ALL=C.UTF-8 for others"
        : "";
  }
}
