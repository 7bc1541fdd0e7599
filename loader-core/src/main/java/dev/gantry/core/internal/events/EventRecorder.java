// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import jdk.jfr.FlightRecorder;

/// Says whether the JDK's flight recorder is used. A runtime made by `jlink` may lack the
/// recorder; then the classes of events are not loaded.
final class EventRecorder {
  private static final boolean PRESENT = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private EventRecorder() {}

  /// Whether a recording was ever started. The package's description says why that matters.
  static boolean wasStarted() {
    return PRESENT && FlightRecorder.isInitialized();
  }
}
