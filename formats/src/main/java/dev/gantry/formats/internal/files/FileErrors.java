package dev.gantry.formats.internal.files;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import org.jspecify.annotations.Nullable;

/// Turns what `java.nio` throws into the kernel's words, which the rest of Gantry speaks.
///
/// `java.nio` keeps the meaning of an `errno` but not its number; the numbers here are Linux's.
public final class FileErrors {
  private static final Failure.Errno IS_A_DIRECTORY =
      new Failure.Errno(21, "EISDIR", "Is a directory");

  private FileErrors() {}

  /// @param operation what was tried, such as `open`
  /// @param subject on what: the file, with offset and length where they matter
  public static TransferException of(String operation, String subject, IOException cause) {
    return new TransferException(operation, subject, failure(cause), cause);
  }

  /// A directory where a file was expected.
  public static TransferException isDirectory(String operation, String subject) {
    return new TransferException(operation, subject, IS_A_DIRECTORY);
  }

  private static Failure failure(IOException cause) {
    return switch (cause) {
      case ClosedByInterruptException _ -> new Failure.Cancelled();
      case NoSuchFileException _ -> new Failure.Errno(2, "ENOENT", "No such file or directory");
      case AccessDeniedException _ -> new Failure.Errno(13, "EACCES", "Permission denied");
      case NotDirectoryException _ -> new Failure.Errno(20, "ENOTDIR", "Not a directory");
      case FileSystemLoopException _ ->
          new Failure.Errno(40, "ELOOP", "Too many levels of symbolic links");
      case FileSystemException withReason -> byMeaning(withReason.getReason());
      case IOException other -> byMeaning(other.getMessage());
    };
  }

  /// Elsewhere the JDK leaves only the text of strerror(3), of which these are likely for a reader.
  private static Failure byMeaning(@Nullable String meaning) {
    return switch (meaning) {
      case "Is a directory" -> IS_A_DIRECTORY;
      case "Not a directory" -> new Failure.Errno(20, "ENOTDIR", meaning);
      case "Too many open files" -> new Failure.Errno(24, "EMFILE", meaning);
      case "File name too long" -> new Failure.Errno(36, "ENAMETOOLONG", meaning);
      case "Too many levels of symbolic links",
          "Too many levels of symbolic links or unable to access attributes of symbolic link" ->
          new Failure.Errno(40, "ELOOP", meaning);
      case "Stale file handle" -> new Failure.Errno(116, "ESTALE", meaning);
      case "Input/output error" -> new Failure.Errno(5, "EIO", meaning);
      case null -> new Failure.Errno(0, "unknown", "the JDK gives no reason");
      case String other -> new Failure.Errno(0, "unknown", other);
    };
  }
}
