package dev.gantry.core;

import java.nio.file.Path;

/// A file whose bytes break the rules of its format. Nothing of it was loaded.
public final class MalformedFileException extends GantryException {
  private static final long serialVersionUID = 1L;

  private final String file;
  private final long offset;
  private final String kind;
  private final String detail;

  /// @param offset where in the file the fault shows, in bytes from its start
  /// @param kind the rule that is broken, as a stable name in kebab case such as `header-too-large`
  /// @param detail what was found, for a person; control characters are escaped
  public MalformedFileException(Path file, long offset, String kind, String detail) {
    super(file + ": offset " + offset + ": " + kind + ": " + OneLine.of(detail));
    this.detail = OneLine.of(detail);
    this.file = file.toString();
    this.offset = offset;
    this.kind = kind;
  }

  public Path file() {
    return Path.of(file);
  }

  /// Bytes from the start of the file.
  public long offset() {
    return offset;
  }

  /// The rule that is broken, as a stable name in kebab case.
  public String kind() {
    return kind;
  }

  /// What was found.
  public String detail() {
    return detail;
  }
}
