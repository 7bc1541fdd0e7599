// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Says that an operation on a file or a device failed: which operation, on which file or device,
/// and with which code.
public sealed class TransferException extends GantryException {
  private static final long serialVersionUID = 1L;

  private final String operation;
  private final Failure failure;

  /// @param operation the operation that failed, such as `pread`
  /// @param subject the object of the operation: a file with offset and length, or a device with a
  ///     size
  public TransferException(String operation, String subject, Failure failure) {
    this(operation, subject, failure, null);
  }

  /// Does the same as the other constructor, and keeps the cause.
  ///
  /// @param cause the exception that the failure came from, if there is one
  public TransferException(
      String operation, String subject, Failure failure, @Nullable Throwable cause) {
    super(operation + " failed: " + OneLine.of(subject) + ": " + failure.describe());
    if (cause != null) {
      initCause(cause);
    }
    this.operation = operation;
    this.failure = failure;
  }

  /// Makes the exception for bytes that were found malformed after some of them had been used.
  public static TransferException of(String operation, MalformedFileException wrong) {
    return new TransferException(
        operation,
        wrong.file() + " at offset " + wrong.offset(),
        new Failure.Malformed(wrong.kind(), wrong.detail()),
        wrong);
  }

  /// The operation that failed, such as `pread`.
  public final String operation() {
    return operation;
  }

  /// The code that was returned, by its kind.
  public final Failure failure() {
    return failure;
  }

  /// Whether the kernel refused with one of these codes.
  ///
  /// @param names names of codes, such as `ENOENT`
  public final boolean isErrno(Set<String> names) {
    return failure instanceof Failure.Errno(_, String name, _) && names.contains(name);
  }

  /// Whether the failure says that the file does not exist: the kernel's `ENOENT`, or a store's
  /// status 404.
  public final boolean isNotFound() {
    return isErrno(Set.of("ENOENT"))
        || (failure instanceof Failure.Remote(int status, _) && status == 404);
  }

  /// A read into the caller's memory failed. The tensors or extents that [#complete] names have
  /// their new bytes; all others have their old bytes, their new bytes, or some of both.
  public static final class IncompleteRead extends TransferException {
    private static final long serialVersionUID = 1L;

    /// The most names that a message lists.
    private static final int MAX_NAMES = 8;

    @SuppressWarnings("serial") // An immutable list, which is serializable.
    private final List<String> complete;

    /// @param complete the names of the tensors or extents that were read as a whole
    /// @param all the number of tensors or extents that were to be read
    /// @param reason why the read failed
    public IncompleteRead(List<String> complete, int all, TransferException reason) {
      super("read into memory", subject(complete, all, reason), reason.failure(), reason);
      this.complete = List.copyOf(complete);
    }

    private static String subject(List<String> complete, int all, TransferException reason) {
      String names = String.join(", ", complete.subList(0, Math.min(MAX_NAMES, complete.size())));
      return complete.size()
          + " of "
          + all
          + " are complete"
          + (complete.isEmpty() ? "" : " (" + names + (complete.size() > MAX_NAMES ? ", …)" : ")"))
          + ", the others may be partly overwritten; "
          + reason.getMessage();
    }

    /// The names of the tensors that are complete, or of the extents as [Extent#toString] writes
    /// them. Every other tensor or extent must be read again before it is used.
    public List<String> complete() {
      return complete;
    }
  }
}
