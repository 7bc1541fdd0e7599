// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import jdk.jfr.FlightRecorder;

/// The JDK's flight recorder, which a runtime made by `jlink` need not have. The classes of events are not
/// loaded without it.
final class EventRecorder {
  private static final boolean PRESENT = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private EventRecorder() {}

  /// Whether a recording was ever started: see the package.
  static boolean wasStarted() {
    return PRESENT && FlightRecorder.isInitialized();
  }
}
