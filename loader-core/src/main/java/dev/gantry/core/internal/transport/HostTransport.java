// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;

/// `host`: reads straight into host memory.
final class HostTransport {
  private HostTransport() {}

  /// @param scatter of the calling thread
  /// @param direct whether to go past the page cache
  /// @return whether the bytes went past the page cache
  static boolean read(
      SourceFile file, Read read, Target target, boolean direct, HostScatter scatter) {
    return switch (target) {
      case Target.InSlab in ->
          file.read(place(read, in), read.fileOffset(), read.required(), direct);
      case Target.InPlace(var landings) -> scatter.read(file, read, landings, direct);
    };
  }

  /// The memory that a read fills.
  static MemorySegment place(Read read, Target.InSlab target) {
    if (!(target.slab() instanceof HostSlab slab)) {
      throw new MisuseException("transport host cannot fill memory of " + target.slab().device());
    }
    return slab.segment().asSlice(read.slabOffset(), read.length());
  }
}
