// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// After each test and its `@AfterEach` methods, the process must hold the same memory and files
/// as before the test. A leak of an earlier test does not count, because that test has failed
/// already.
final class NoLeaks implements BeforeEachCallback, AfterEachCallback {
  private LiveResources.Snapshot before = LiveResources.Snapshot.NOTHING;

  @Override
  public void beforeEach(ExtensionContext context) {
    before = held();
  }

  @Override
  public void afterEach(ExtensionContext context) {
    assertThat(held()).isEqualTo(before);
  }

  static void assertNothingIsHeld() {
    assertThat(held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  /// Returns the held resources without idle ones that are kept for the next load.
  static LiveResources.Snapshot held() {
    GantrySession.shared().freeIdle();
    return LiveResources.snapshot();
  }

  /// Returns the bytes of arrays' memory on the host and on all devices.
  static long heldBytes() {
    return held().hostBytes() + held().deviceBytes();
  }
}
