package dev.gantry.core;

/// A call that the caller's own program should not have made: a closed slab, an unknown tensor
/// name, a cast that does not exist.
public final class MisuseException extends GantryException {
  private static final long serialVersionUID = 1L;

  /// @param message may hold names from files; control characters are escaped
  public MisuseException(String message) {
    super(OneLine.of(message));
  }
}
