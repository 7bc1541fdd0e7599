// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The kernel's error codes for file and memory calls.
///
/// Source: `asm-generic/errno-base.h` and `errno.h`, which x86-64 and aarch64 share, and glibc's
/// `strerror`.
public enum Errno {
  EPERM(1, "Operation not permitted"),
  ENOENT(2, "No such file or directory"),
  EINTR(4, "Interrupted system call"),
  EIO(5, "Input/output error"),
  ENXIO(6, "No such device or address"),
  EBADF(9, "Bad file descriptor"),
  EAGAIN(11, "Resource temporarily unavailable"),
  ENOMEM(12, "Cannot allocate memory"),
  EACCES(13, "Permission denied"),
  EFAULT(14, "Bad address"),
  EBUSY(16, "Device or resource busy"),
  EEXIST(17, "File exists"),
  EXDEV(18, "Invalid cross-device link"),
  ENODEV(19, "No such device"),
  ENOTDIR(20, "Not a directory"),
  EISDIR(21, "Is a directory"),
  EINVAL(22, "Invalid argument"),
  ENFILE(23, "Too many open files in system"),
  EMFILE(24, "Too many open files"),
  EFBIG(27, "File too large"),
  ENOSPC(28, "No space left on device"),
  ESPIPE(29, "Illegal seek"),
  EROFS(30, "Read-only file system"),
  EPIPE(32, "Broken pipe"),
  ENAMETOOLONG(36, "File name too long"),
  ENOLCK(37, "No locks available"),
  ENOSYS(38, "Function not implemented"),
  ENOTEMPTY(39, "Directory not empty"),
  ELOOP(40, "Too many levels of symbolic links"),
  ENODATA(61, "No data available"),
  ETIME(62, "Timer expired"),
  EPROTO(71, "Protocol error"),
  EBADMSG(74, "Bad message"),
  EOVERFLOW(75, "Value too large for defined data type"),
  EILSEQ(84, "Invalid or incomplete multibyte or wide character"),
  EOPNOTSUPP(95, "Operation not supported"),
  ECONNABORTED(103, "Software caused connection abort"),
  ECONNRESET(104, "Connection reset by peer"),
  ENOBUFS(105, "No buffer space available"),
  ENOTCONN(107, "Transport endpoint is not connected"),
  ETIMEDOUT(110, "Connection timed out"),
  ECONNREFUSED(111, "Connection refused"),
  EHOSTDOWN(112, "Host is down"),
  EHOSTUNREACH(113, "No route to host"),
  ESTALE(116, "Stale file handle"),
  EUCLEAN(117, "Structure needs cleaning"),
  EREMOTEIO(121, "Remote I/O error"),
  EDQUOT(122, "Disk quota exceeded"),
  ENOMEDIUM(123, "No medium found");

  private static final Map<Integer, Errno> BY_CODE =
      Stream.of(values()).collect(Collectors.toUnmodifiableMap(Errno::code, Function.identity()));

  private final int code;
  private final String meaning;

  Errno(int code, String meaning) {
    this.code = code;
    this.meaning = meaning;
  }

  public int code() {
    return code;
  }

  /// Returns the constant of this code; empty if the table has none.
  public static Optional<Errno> of(int code) {
    return Optional.ofNullable(BY_CODE.get(code));
  }

  /// Returns the constant of the error that a JDK exception reports; empty if the exception does
  /// not tell.
  public static Optional<Errno> of(IOException e) {
    return switch (e) {
      case NoSuchFileException _ -> Optional.of(ENOENT);
      case FileAlreadyExistsException _ -> Optional.of(EEXIST);
      case DirectoryNotEmptyException _ -> Optional.of(ENOTEMPTY);
      case AccessDeniedException _ -> Optional.of(EACCES);
      case NotDirectoryException _ -> Optional.of(ENOTDIR);
      case FileSystemLoopException _ -> Optional.of(ELOOP);
      case FileSystemException withReason -> byMeaning(withReason.getReason());
      case IOException other -> byMeaning(other.getMessage());
    };
  }

  /// Finds a constant by the text of strerror(3): other exceptions of the JDK contain only that
  /// text.
  private static Optional<Errno> byMeaning(@Nullable String text) {
    if (text == null) {
      return Optional.empty();
    }
    return Stream.of(values()).filter(known -> text.startsWith(known.meaning)).findFirst();
  }

  /// Checks a call's result.
  ///
  /// @param subject the object of the call: a file, with offset and length where they matter, or
  ///     memory with its size
  /// @return `answer`
  /// @throws TransferException if `answer` is a negated `errno`
  public static int require(int answer, String operation, Object subject) {
    if (answer < 0) {
      throw new TransferException(
          operation, subject.toString(), failure(-answer, subject.toString()));
    }
    return answer;
  }

  /// Does the same as [#require(int, String, Object)] for a call whose result has no other
  /// meaning.
  public static void check(int answer, String operation, Object subject) {
    int _ = require(answer, operation, subject);
  }

  /// Does the same as [#check(int, String, Object)], but accepts the error `allowed`.
  public static void check(int answer, Errno allowed, String operation, Object subject) {
    if (answer != -allowed.code) {
      check(answer, operation, subject);
    }
  }

  /// Does the same as [#require(int, String, Object)] for a 64-bit result.
  public static long require(long answer, String operation, Object subject) {
    return answer < 0 ? require((int) answer, operation, subject) : answer;
  }

  /// Makes the failure of a call that names a file. If there is no such file, the failure also says
  /// why, as far as the name tells.
  public static Failure.Errno failure(int code, String file) {
    Failure.Errno known = failure(code);
    return code == ENOENT.code
        ? new Failure.Errno(code, known.name(), known.meaning() + FileNames.whyMissing(file))
        : known;
  }

  /// Makes the failure of a call with this `errno`; its name is `unknown` if the table has no such code.
  public static Failure.Errno failure(int code) {
    return of(code)
        .map(known -> new Failure.Errno(code, known.name(), known.meaning))
        .orElseGet(() -> new Failure.Errno(code, "unknown", "no such code in our table"));
  }
}
