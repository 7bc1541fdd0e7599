// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Metrics;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import org.junit.jupiter.api.Test;

class RehearsalTest {
  @Test
  void loadsItsByteAndTheProgramsMetricsDoNotCountIt() {
    Metrics before = GantrySession.shared().metrics();
    assertThat(Rehearsal.load()).isOne();
    assertThat(GantrySession.shared().metrics().loads()).isEqualTo(before.loads());
    assertThat(GantrySession.shared().metrics().reads()).isEqualTo(before.reads());
  }

  @Test
  void leavesTheMemoryThatTheProgramHasPrepared() {
    HostSlab.allocate(8 << 20).release();
    long before = LiveResources.snapshot().hostBytes();
    assertThat(Rehearsal.load()).isOne();
    assertThat(LiveResources.snapshot().hostBytes()).isEqualTo(before);
  }
}
