package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Gantry;
import dev.gantry.core.memory.LiveResources;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// After each test, when its `@AfterEach` methods have run, no memory and no file is held.
final class NoLeaks implements AfterEachCallback {
  @Override
  public void afterEach(ExtensionContext context) {
    assertNothingIsHeld();
  }

  static void assertNothingIsHeld() {
    // On a GPU the process's session keeps its pinned buffers from load to load.
    Gantry.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }
}
