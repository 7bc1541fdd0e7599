// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.FileSystemException;

/// Turns exceptions of `java.nio` into the kernel's error codes, which the rest of Gantry uses.
///
/// `java.nio` keeps the meaning of an `errno` but not its number; the numbers here are Linux's.
public final class FileErrors {
  private FileErrors() {}

  /// @param operation what was tried, such as `open`
  /// @param subject what it was tried on: the file, with offset and length where they matter
  public static TransferException of(String operation, String subject, IOException cause) {
    return new TransferException(operation, subject, failure(cause), cause);
  }

  /// Makes the error for a directory where a file was expected.
  public static TransferException isDirectory(String operation, String subject) {
    return new TransferException(operation, subject, Errno.failure(Errno.EISDIR.code()));
  }

  private static Failure failure(IOException cause) {
    if (cause instanceof ClosedByInterruptException) {
      return new Failure.Cancelled();
    }
    String reason =
        cause instanceof FileSystemException file ? file.getReason() : cause.getMessage();
    return Errno.of(cause)
        .map(known -> Errno.failure(known.code()))
        .orElseGet(() ->
            new Failure.Errno(0, "unknown", reason == null ? "the JDK gives no reason" : reason));
  }
}
