// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import java.util.function.Supplier;

/// Tells a block that the ids of a pass were checked before they were copied to the device, so that it need not copy
/// them back, which would wait for all that the device has queued.
public final class CheckedIds {
  private static final ScopedValue<Boolean> CHECKED = ScopedValue.newInstance();

  private CheckedIds() {}

  /// Whether the pass that this thread computes has checked ids.
  public static boolean here() {
    return CHECKED.isBound();
  }

  static <T> T during(Supplier<T> pass) {
    return ScopedValue.where(CHECKED, true).call(pass::get);
  }
}
