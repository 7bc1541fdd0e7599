// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import dev.gantry.core.MisuseException;
import java.util.HashMap;
import java.util.Map;

/// Remembers which options of a builder were called, and refuses two options that choose the same
/// thing: the order of the calls would decide otherwise. The builder of weights uses it, too. Not
/// thread-safe.
public final class Alternatives {
  private record Call(String option, Object value) {}

  private final Map<String, Call> calls = new HashMap<>();

  /// @param thing what the option chooses
  /// @throws MisuseException if another option chose this already
  public void call(String thing, String option, Object value) {
    Call earlier = calls.put(thing, new Call(option, value));
    if (earlier != null && !earlier.option().equals(option)) {
      throw new MisuseException(
          "%s (%s) and %s (%s) both choose %s; call one of them"
              .formatted(earlier.option(), earlier.value(), option, value, thing));
    }
  }
}
