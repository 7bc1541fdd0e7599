package dev.gantry.core.internal.ring;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Bytes of a batch that the CPU makes: decoded records, labels.
///
/// @param slotOffset where they go, in bytes from the slot's start
/// @param bytes how many
/// @param writers each writes its own part of the same memory; several may run at once. What they
///     leave unwritten is undefined
public record HostWrites(long slotOffset, long bytes, List<HostWriter> writers) {
  /// Of a batch that consists of what is read.
  public static final HostWrites NOTHING = new HostWrites(0, 0, List.of());

  public HostWrites {
    writers = List.copyOf(writers);
    if (slotOffset < 0 || bytes < 0) {
      throw new MisuseException("made at " + slotOffset + ", " + bytes + " bytes");
    }
  }

  /// Writes a part of the bytes.
  @FunctionalInterface
  public interface HostWriter {
    /// @param target all of the memory that is made, of [HostWrites#bytes]; the CPU's, also for a slot of
    ///     a device. Not to be kept
    void make(MemorySegment target);
  }
}
