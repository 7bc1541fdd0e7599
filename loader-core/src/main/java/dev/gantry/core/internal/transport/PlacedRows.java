// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.cufile.RegistrationCache;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Has cuFile read the rows of one request to their places. Rows that are adjacent in the file and small are read
/// together, where libcufile can: a disk is slow at small requests. For one thread.
final class PlacedRows implements AutoCloseable {
  /// Larger rows are read by themselves, to their registered memory.
  private static final long TOGETHER_BYTES = 1 << 20;

  /// Shorter rows that do not lie one behind the other are too small for requests to a disk.
  private static final long MIN_ROW_BYTES = 64 << 10;

  private final CuFileReads reads;
  private final boolean vectors;
  private final Function<Target.Piece, RegistrationCache.Use> registered;
  private final List<RegistrationCache.Use> uses = new ArrayList<>();

  /// Rows that were put off, all in memory of one device.
  private final List<MemorySegment> places = new ArrayList<>();

  /// The registered region that has the first of them, or that place.
  private MemorySegment region = MemorySegment.NULL;

  /// The context of their device; null before the first.
  private @Nullable CudaContext device;

  /// The offsets in the file at which they begin and end.
  private long begin;

  private long end;

  /// @param registered begins a use of a piece's memory
  PlacedRows(CuFileReads reads, Function<Target.Piece, RegistrationCache.Use> registered) {
    this.reads = reads;
    this.vectors = reads.cuFile().hasVectors();
    this.registered = registered;
  }

  static Memory.OnDevice onDevice(Memory memory) {
    return switch (memory) {
      case Memory.OnDevice device -> device;
      case Memory.OnHost _ -> throw new MisuseException("cuFile cannot fill host memory");
    };
  }

  /// Whether cuFile brings pieces to their places well: all of them go to devices, no two of them want the same bytes,
  /// and no rows are too short.
  static boolean suit(List<Target.Piece> pieces) {
    List<Copy2D> all = new ArrayList<>();
    for (Target.Piece piece : pieces) {
      Copy2D rows = piece.rows();
      if (piece.memory() instanceof Memory.OnHost
          || (rows.rows() > 1 && rows.width() < MIN_ROW_BYTES)) {
        return false;
      }
      for (long row = 0; row < rows.rows(); row++) {
        all.add(rows.rows(row, 1));
      }
    }
    all.sort(Comparator.comparingLong(Copy2D::source));
    for (int i = 1; i < all.size(); i++) {
      if (all.get(i).source() < all.get(i - 1).sourceEnd()) {
        return false;
      }
    }
    return true;
  }

  /// @param at where the request begins in the file
  void read(Target.Piece piece, long at) {
    Copy2D rows = piece.rows();
    Memory.OnDevice memory = onDevice(piece.memory());
    CudaContext to = CudaContext.of(memory.device());
    long first = memory.address() + rows.target();
    RegistrationCache.Use use = registered.apply(piece);
    uses.add(use);
    for (long row = 0; row < rows.rows(); row++) {
      long address = first + row * rows.targetPitch();
      long from = at + rows.source() + row * rows.sourcePitch();
      MemorySegment place = MemorySegment.ofAddress(address).reinterpret(rows.width());
      MemorySegment base = use.refusal().isEmpty() ? use.base() : place;
      if (vectors && rows.width() < TOGETHER_BYTES) {
        putOff(to, place, base, from);
      } else {
        readOne(to, place, base, from);
      }
    }
  }

  private void readOne(CudaContext to, MemorySegment place, MemorySegment base, long from) {
    long bytes = place.byteSize();
    reads.read(to, base, place.address() - base.address(), from, bytes, bytes);
  }

  private void putOff(CudaContext to, MemorySegment place, MemorySegment base, long from) {
    if (device != to || from != end || places.size() == CuFile.MAX_PIECES) {
      finish();
    }
    if (places.isEmpty()) {
      device = to;
      region = base;
      begin = from;
    }
    places.add(place);
    end = from + place.byteSize();
  }

  /// Reads the rows that were put off.
  void finish() {
    CudaContext to = device;
    if (to == null || places.isEmpty()) {
      return;
    }
    if (places.size() == 1) {
      readOne(to, places.getFirst(), region, begin);
    } else {
      reads.readTogether(to, List.copyOf(places), begin);
    }
    places.clear();
  }

  @Override
  public void close() {
    uses.forEach(RegistrationCache.Use::close);
  }
}
