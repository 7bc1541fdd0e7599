package dev.gantry.core;

import dev.gantry.core.internal.natives.FileCalls;

/// Sessions for tests of other modules.
public final class Sessions {
  private Sessions() {}

  /// A session that makes its file calls through `calls`.
  public static Gantry over(FileCalls calls) {
    return Gantry.open(calls);
  }
}
