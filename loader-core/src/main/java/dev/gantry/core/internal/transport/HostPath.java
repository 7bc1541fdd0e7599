package dev.gantry.core.internal.transport;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;

/// `host`: reads straight into memory of the CPU.
public record HostPath() implements TransferPath {
  /// The memory that a read fills.
  static MemorySegment place(Read read, Target target) {
    if (!(target.slab() instanceof HostSlab slab)) {
      throw new MisuseException("the host path cannot fill memory of " + target.slab().device());
    }
    return slab.segment().asSlice(read.slabOffset(), read.length());
  }

  /// Nothing of its own: the slab is the buffer, and there is nothing to wait for or to free.
  static final class HostLane implements Lane {
    @Override
    public boolean read(SourceFile file, Read read, Target target, boolean direct) {
      return file.read(place(read, target), read.fileOffset(), read.required(), direct);
    }

    @Override
    public void drain() {}

    @Override
    public void close() {}
  }
}
