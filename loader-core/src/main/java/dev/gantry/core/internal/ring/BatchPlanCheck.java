package dev.gantry.core.internal.ring;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;

/// Whether a filling keeps within its slot.
///
/// @param slotBytes what nothing may pass
/// @param madeBytes the most that may be made
/// @param requestBytes the most that one read may ask for
record BatchPlanCheck(long slotBytes, long madeBytes, long requestBytes) {
  /// @throws MisuseException where it does not
  void check(long number, BatchPlan<?> filling) {
    for (Read read : filling.reads()) {
      if (read.slab() != 0) {
        throw misuse(number, "a read into slab " + read.slab() + "; there is only 0");
      }
      if (read.length() <= 0 || read.length() > requestBytes) {
        throw misuse(
            number, "a read of " + read.length() + " bytes; at most " + requestBytes + " at once");
      }
      if (read.required() <= 0 || read.required() > read.length() || read.fileOffset() < 0) {
        throw misuse(
            number,
            "a read of "
                + read.length()
                + " bytes that requires "
                + read.required()
                + " from offset "
                + read.fileOffset()
                + " on");
      }
      if ((read.slabOffset() | read.length() | read.fileOffset()) % PlanLimits.BLOCK_BYTES != 0) {
        throw misuse(number, "a read that is not aligned to blocks: " + read);
      }
      checkWithin(number, "a read", read.slabOffset(), read.length());
    }
    HostWrites made = filling.hostWrites();
    if (made.bytes() > madeBytes) {
      throw misuse(number, made.bytes() + " bytes are made; at most " + madeBytes);
    }
    checkWithin(number, "what is made", made.slotOffset(), made.bytes());
    for (SlotCopy copy : filling.copies()) {
      checkCopy(number, copy);
    }
  }

  private void checkCopy(long number, SlotCopy copy) {
    try {
      checkWithin(number, "a copy", copy.from(), copy.fromEnd() - copy.from());
      checkWithin(number, "a copy", copy.to(), copy.toEnd() - copy.to());
    } catch (ArithmeticException _) {
      throw misuse(number, "a copy passes every slot: " + copy);
    }
  }

  private void checkWithin(long number, String what, long offset, long length) {
    if (offset < 0 || length > slotBytes || offset > slotBytes - length) {
      throw misuse(
          number,
          what + " of " + length + " bytes at " + offset + " passes the slot of " + slotBytes);
    }
  }

  private static MisuseException misuse(long number, String detail) {
    return new MisuseException("batch " + number + " does not fit its slot: " + detail);
  }
}
