package dev.gantry.core.ring;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Bytes of a batch that the CPU makes: decoded records, labels.
///
/// @param slotOffset where they go, in bytes from the slot's start
/// @param bytes how many
/// @param makers each writes its own part of the same memory; several may run at once. What they
///     leave unwritten is undefined
public record Made(long slotOffset, long bytes, List<Maker> makers) {
  /// Of a batch that consists of what is read.
  public static final Made NOTHING = new Made(0, 0, List.of());

  public Made {
    makers = List.copyOf(makers);
    if (slotOffset < 0 || bytes < 0) {
      throw new MisuseException("made at " + slotOffset + ", " + bytes + " bytes");
    }
  }

  /// Writes a part of the bytes.
  @FunctionalInterface
  public interface Maker {
    /// @param target all of the memory that is made, of [Made#bytes]; the CPU's, also for a slot of
    ///     a device. Not to be kept
    void make(MemorySegment target);
  }
}
