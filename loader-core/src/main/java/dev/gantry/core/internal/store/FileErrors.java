// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileNames;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.FileSystemException;

/// Turns exceptions of `java.nio` into the kernel's error codes, so that all failures of files
/// have codes.
///
/// `java.nio` keeps the meaning of an `errno` but not its number; the numbers here are Linux's.
public final class FileErrors {
  private FileErrors() {}

  /// @param operation the operation that failed, such as `open`
  /// @param subject the file, with offset and length if they matter
  public static TransferException of(String operation, String subject, IOException cause) {
    if (cause instanceof ClosedByInterruptException) {
      TransferException interrupted = WorkerThreads.interrupted(operation, subject);
      interrupted.initCause(cause);
      return interrupted;
    }
    return new TransferException(operation, subject, failure(subject, cause), cause);
  }

  /// @param errno the error code of the call that failed
  static TransferException of(String operation, String subject, int errno) {
    return new TransferException(operation, subject, Errno.failure(errno, subject));
  }

  /// Makes the error for a directory where a file was expected.
  public static TransferException ofDirectory(String operation, String subject) {
    return new TransferException(operation, subject, Errno.failure(Errno.EISDIR.code()));
  }

  /// Returns what [FileNames#whyMissing] does, for other modules.
  public static String whyMissing(String name) {
    return FileNames.whyMissing(name);
  }

  private static Failure failure(String subject, IOException cause) {
    String reason =
        cause instanceof FileSystemException file ? file.getReason() : cause.getMessage();
    return Errno.of(cause)
        .map(known -> Errno.failure(known.code(), subject))
        .orElseGet(() ->
            new Failure.Errno(0, "unknown", reason == null ? "the JDK gives no reason" : reason));
  }
}
