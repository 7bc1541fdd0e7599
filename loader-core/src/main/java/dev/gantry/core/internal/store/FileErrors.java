// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.FileSystemException;
import java.util.regex.Pattern;

/// Turns exceptions of `java.nio` into the kernel's error codes, so that all failures of files
/// have codes.
///
/// `java.nio` keeps the meaning of an `errno` but not its number; the numbers here are Linux's.
public final class FileErrors {
  /// The encoding of the JVM's file names, which the locale decides.
  private static final String NAMES = System.getProperty("sun.jnu.encoding", "UTF-8");

  /// A URL as a [java.nio.file.Path] has it, which joins slashes. `step:/x` is a path like any
  /// other, so only the schemes of stores count, Gantry's and those of Hadoop.
  private static final Pattern URL =
      Pattern.compile(
          "(?i)(s3[an]?|gs|az|abfss?|wasbs?|hdfs|hf|https?|ftp|file|gantry-resident):/.*");

  private FileErrors() {}

  /// @param operation the operation that failed, such as `open`
  /// @param subject the file, with offset and length if they matter
  public static TransferException of(String operation, String subject, IOException cause) {
    return new TransferException(operation, subject, failure(subject, cause), cause);
  }

  /// @param errno the error code of the call that failed
  static TransferException of(String operation, String subject, int errno) {
    return new TransferException(operation, subject, failure(subject, errno));
  }

  /// Makes the error for a directory where a file was expected.
  public static TransferException isDirectory(String operation, String subject) {
    return new TransferException(operation, subject, Errno.failure(Errno.EISDIR.code()));
  }

  /// Whether a path's text is what is left of a URL, such as `s3:/bucket/key`; `./s3:/bucket/key` is a path.
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
    return !NAMES.equals("UTF-8") && (name.indexOf('?') >= 0 || name.indexOf('\uFFFD') >= 0)
        ? "; this JVM takes names as " + NAMES + ": set LC_ALL=C.UTF-8 for others"
        : "";
  }

  private static Failure failure(String subject, int errno) {
    Failure.Errno known = Errno.failure(errno);
    return errno == Errno.ENOENT.code()
        ? new Failure.Errno(errno, known.name(), known.meaning() + whyMissing(subject))
        : known;
  }

  private static Failure failure(String subject, IOException cause) {
    if (cause instanceof ClosedByInterruptException) {
      return new Failure.Cancelled();
    }
    String reason =
        cause instanceof FileSystemException file ? file.getReason() : cause.getMessage();
    return Errno.of(cause)
        .map(known -> failure(subject, known.code()))
        .orElseGet(() ->
            new Failure.Errno(0, "unknown", reason == null ? "the JDK gives no reason" : reason));
  }
}
