// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.nio.file.Path;

/// Says that a file's bytes break the rules of its format. Nothing of the file was loaded.
public final class MalformedFileException extends GantryException {
  private static final long serialVersionUID = 1L;

  private final String file;
  private final boolean local;
  private final long offset;
  private final String kind;
  private final String detail;

  /// @param offset where in the file the fault is, in bytes from its start
  /// @param kind the rule that is broken, as a stable name in kebab case such as `header-too-large`
  /// @param detail a description of what was found, for a person to read; control characters are
  ///     escaped
  public MalformedFileException(Location file, long offset, String kind, String detail) {
    super(file + ": offset " + offset + ": " + kind + ": " + OneLine.of(detail));
    this.detail = OneLine.of(detail);
    this.file = file.toString();
    this.local = file instanceof Location.Local;
    this.offset = offset;
    this.kind = kind;
  }

  /// Does the same as the other constructor, for a file on this machine.
  public MalformedFileException(Path file, long offset, String kind, String detail) {
    this(Location.of(file), offset, kind, detail);
  }

  /// The malformed file; a URI comes without its query.
  public Location file() {
    return local ? Location.of(Path.of(file)) : Location.of(file);
  }

  /// Returns the offset of the fault, in bytes from the start of the file.
  public long offset() {
    return offset;
  }

  /// The rule that is broken, as a stable name in kebab case.
  public String kind() {
    return kind;
  }

  /// Returns what was found in the file, in plain words.
  public String detail() {
    return detail;
  }
}
