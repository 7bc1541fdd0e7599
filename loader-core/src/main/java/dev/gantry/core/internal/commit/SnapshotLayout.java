package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.PlanLimits;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Where the bytes of files go in a snapshot: those from each device to a memory of their own.
/// There the parts of a file lie as in the file, one after the other and with the same phase to
/// blocks, so that what is whole blocks of the file can be written from where it is. Pure.
///
/// @param files what was asked for
/// @param places by file and part; null for a part that is no memory or has no bytes
/// @param sizes the bytes needed for what comes from each device
record SnapshotLayout(
    List<NewFile> files, List<List<@Nullable Place>> places, Map<Device, Long> sizes) {
  /// @param origin whose memory the bytes are in now
  /// @param offset in the memory for that origin
  record Place(Device origin, long offset) {}

  static SnapshotLayout of(List<NewFile> files) {
    Map<Device, Long> ends = new HashMap<>();
    List<List<@Nullable Place>> places = new ArrayList<>(files.size());
    for (NewFile file : files) {
      places.add(place(file, ends));
    }
    return new SnapshotLayout(List.copyOf(files), places, ends);
  }

  private static List<@Nullable Place> place(NewFile file, Map<Device, Long> ends) {
    List<@Nullable Place> places = new ArrayList<>(file.parts().size());
    Device before = null;
    long fileOffset = 0;
    for (Source part : file.parts()) {
      Device origin = origin(part);
      if (origin == null || part.length() == 0) {
        places.add(null);
        before = part.length() == 0 ? before : null;
      } else {
        long end = ends.getOrDefault(origin, 0L);
        long offset = origin.equals(before) ? end : withPhase(end, fileOffset);
        places.add(new Place(origin, offset));
        ends.put(origin, Math.addExact(offset, part.length()));
        before = origin;
      }
      fileOffset += part.length();
    }
    return places;
  }

  /// The first offset from `end` on that lies in its block where `fileOffset` lies in its own.
  private static long withPhase(long end, long fileOffset) {
    long block = PlanLimits.BLOCK_BYTES;
    return Math.addExact(end, Math.floorMod(fileOffset - end, block));
  }

  private static @Nullable Device origin(Source part) {
    return switch (part) {
      case Source.HostMemory _ -> Device.HOST;
      case Source.DeviceMemory memory -> memory.device();
      case Source.FilePart _ -> null;
    };
  }

  /// The files with parts of the same lengths in the snapshot's memory.
  ///
  /// @param slabs the memory for each origin
  List<NewFile> moved(Map<Device, Slab> slabs) {
    List<NewFile> moved = new ArrayList<>(files.size());
    for (int i = 0; i < files.size(); i++) {
      NewFile file = files.get(i);
      List<Source> parts = new ArrayList<>(file.parts().size());
      for (int j = 0; j < file.parts().size(); j++) {
        Source part = file.parts().get(j);
        Place place = places.get(i).get(j);
        parts.add(place == null ? part : moved(part, place, slabs));
      }
      moved.add(new NewFile(file.file(), parts));
    }
    return moved;
  }

  private static Source moved(Source part, Place place, Map<Device, Slab> slabs) {
    return switch (Objects.requireNonNull(slabs.get(place.origin()))) {
      case CpuSlab cpu ->
          new Source.HostMemory(cpu.segment().asSlice(place.offset(), part.length()));
      case DeviceSlab device ->
          new Source.DeviceMemory(
              device.context().device(), device.address() + place.offset(), part.length());
    };
  }
}
