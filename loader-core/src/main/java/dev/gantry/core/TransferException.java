// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A failed operation on a file or a device: what was tried, on what, and the returned code.
public final class TransferException extends GantryException {
  private static final long serialVersionUID = 1L;

  private final String operation;
  private final Failure failure;

  /// @param operation what was tried, such as `pread`
  /// @param subject on what: a file with offset and length, or a device with a size
  public TransferException(String operation, String subject, Failure failure) {
    this(operation, subject, failure, null);
  }

  public TransferException(
      String operation, String subject, Failure failure, @Nullable Throwable cause) {
    super(operation + " failed: " + OneLine.of(subject) + ": " + failure.describe());
    if (cause != null) {
      initCause(cause);
    }
    this.operation = operation;
    this.failure = failure;
  }

  public String operation() {
    return operation;
  }

  public Failure failure() {
    return failure;
  }

  /// Whether the kernel's code is one of these.
  ///
  /// @param names such as `ENOENT`
  public boolean isErrno(Set<String> names) {
    return failure instanceof Failure.Errno(_, String name, _) && names.contains(name);
  }
}
