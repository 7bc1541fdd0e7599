// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// After each test, when its `@AfterEach` methods have run, no memory and no file is held that was
/// not held before: what an earlier test left has failed that one already.
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

  /// The resources that are held now, without those that are idle and kept for the next load.
  static LiveResources.Snapshot held() {
    GantrySession.shared().freeIdle();
    return LiveResources.snapshot();
  }

  /// Bytes of arrays' memory, wherever it is.
  static long heldBytes() {
    return held().hostBytes() + held().deviceBytes();
  }
}
