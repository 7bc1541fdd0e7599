// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

class HostSnapshotTest extends SnapshotContract {
  private final Arena arena = Arena.ofShared();
  private final List<MemorySegment> segments = new ArrayList<>();

  @Override
  Source source(byte[] bytes) {
    MemorySegment segment = arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
    segments.add(segment);
    return new Memory.OnHost(segment);
  }

  @Override
  void scribble() {
    segments.forEach(segment -> segment.fill((byte) -1));
  }

  @Override
  void closeMemory() {
    arena.close();
  }

  @Override
  SnapshotLimits limits() {
    return SnapshotLimits.DEFAULT;
  }

  @Override
  Device expectedHome() {
    return Device.HOST;
  }
}
