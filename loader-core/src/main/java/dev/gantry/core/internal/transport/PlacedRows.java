// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.cufile.RegistrationCache;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.function.Function;
import java.util.function.ObjIntConsumer;

/// Has cuFile read the rows of one request directly into their memory. Small rows that are
/// adjacent in the file are read by one call if libcufile has vectored reads, because a disk is
/// slow at small requests. Bytes that several pieces want are read into one of them; the device
/// copies them to the others. Only one thread may use an instance.
final class PlacedRows implements AutoCloseable {
  /// Rows of this size or larger are each read by a call of their own, into their registered
  /// memory.
  private static final long TOGETHER_BYTES = 1 << 20;

  /// The least length of the rows of a piece that has several: shorter rows are too small for
  /// requests to a disk.
  private static final long MIN_ROW_BYTES = 64 << 10;

  private final CuFileReads reads;
  private final boolean vectors;
  private final Function<Target.Piece, RegistrationCache.Use> registered;
  private final List<RegistrationCache.Use> uses = new ArrayList<>();

  /// Small rows that are collected for one vectored read. All are in memory of one device and
  /// adjacent in the file.
  private final List<Row> putOff = new ArrayList<>();

  /// Rows that were read or put off and whose bytes later rows may want, too, in the order of
  /// their file offsets.
  private final Deque<Row> had = new ArrayDeque<>();

  private final List<Copy> copies = new ArrayList<>();

  /// The number of bytes that each device got from another device instead of the file.
  private final Map<Device, Long> passed = new HashMap<>();

  /// A row of a piece, or a part of such a row.
  ///
  /// @param base the registered region that contains `place`, or `place` itself if its memory is
  ///     not registered
  /// @param begin the offset of the row in the file
  private record Row(CudaContext device, MemorySegment place, MemorySegment base, long begin) {
    long end() {
      return begin + place.byteSize();
    }

    Row part(long from, long to) {
      return new Row(device, place.asSlice(from - begin, to - from), base, from);
    }
  }

  /// A copy of bytes that two rows want. Both parts have the same begin and end in the file.
  private record Copy(Row from, Row to) {}

  /// The rows of a piece that are not taken yet; at least one.
  private record Left(int piece, Copy2D rows) {}

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

  /// Whether this class serves the pieces: all of them go to devices, the rows of none are too
  /// short, and devices that want the same bytes reach each other's memory.
  static boolean suit(List<Target.Piece> pieces) {
    return pieces.stream()
            .allMatch(piece ->
                piece.memory() instanceof Memory.OnDevice
                    && (piece.rows().rows() == 1 || piece.rows().width() >= MIN_ROW_BYTES))
        && (!overlap(pieces) || reachOneAnother(pieces));
  }

  /// Whether two pieces want the same bytes.
  private static boolean overlap(List<Target.Piece> pieces) {
    long[] end = {0};
    boolean[] overlap = {false};
    inOrder(
        pieces,
        (row, _) -> {
          overlap[0] |= row.source() < end[0];
          end[0] = Math.max(end[0], row.sourceEnd());
        });
    return overlap[0];
  }

  /// Calls `consumer` with each row of all pieces and the index of its piece, in the order of the
  /// rows' offsets.
  private static void inOrder(List<Target.Piece> pieces, ObjIntConsumer<Copy2D> consumer) {
    PriorityQueue<Left> all =
        new PriorityQueue<>(Comparator.comparingLong(left -> left.rows().source()));
    for (int i = 0; i < pieces.size(); i++) {
      all.add(new Left(i, pieces.get(i).rows()));
    }
    while (!all.isEmpty()) {
      Left first = all.remove();
      long others = first.rows().rows() - 1;
      consumer.accept(first.rows().rows(0, 1), first.piece());
      if (others > 0) {
        all.add(new Left(first.piece(), first.rows().rows(1, others)));
      }
    }
  }

  private static boolean reachOneAnother(List<Target.Piece> pieces) {
    List<Device> devices =
        pieces.stream().<Device>map(piece -> onDevice(piece.memory()).device()).distinct().toList();
    return devices.stream()
        .allMatch(from -> devices.stream().allMatch(to -> Replicas.refusal(from, to).isEmpty()));
  }

  /// Reads all rows. If devices that want the same bytes do not reach each other's memory, the
  /// bytes are read once for each device.
  ///
  /// @param at the offset of the request in the file
  /// @return the number of bytes that each device got from another device
  Map<Device, Long> read(List<Target.Piece> pieces, long at) {
    if (!overlap(pieces) || reachOneAnother(pieces)) {
      readOnce(pieces, at);
      return passed;
    }
    Map<Device, List<Target.Piece>> each = new LinkedHashMap<>();
    for (Target.Piece piece : pieces) {
      each.computeIfAbsent(onDevice(piece.memory()).device(), _ -> new ArrayList<>()).add(piece);
    }
    each.values().forEach(own -> readOnce(own, at));
    return passed;
  }

  private void readOnce(List<Target.Piece> pieces, long at) {
    List<RegistrationCache.Use> own = pieces.stream().map(registered).toList();
    uses.addAll(own);
    inOrder(pieces, (row, piece) -> readRow(row(pieces.get(piece), row, own.get(piece), at)));
    readPutOff();
    copy();
    had.clear();
  }

  private static Row row(Target.Piece piece, Copy2D row, RegistrationCache.Use use, long at) {
    Memory.OnDevice memory = onDevice(piece.memory());
    MemorySegment place =
        MemorySegment.ofAddress(memory.address() + row.target()).reinterpret(row.width());
    return new Row(
        CudaContext.of(memory.device()),
        place,
        use.refusal().isEmpty() ? use.base() : place,
        at + row.source());
  }

  /// Reads those bytes of a row that no earlier row had. Rows come in the order of their offsets.
  /// Therefore earlier rows that end before this row begins are not wanted any more, and each
  /// other earlier row has all bytes from this row's begin to its own end.
  private void readRow(Row row) {
    while (!had.isEmpty() && had.getFirst().end() <= row.begin()) {
      had.removeFirst();
    }
    long begin = row.begin();
    for (Row before : had) {
      long end = Math.min(before.end(), row.end());
      if (end > begin) {
        copies.add(new Copy(before.part(begin, end), row.part(begin, end)));
        begin = end;
      }
    }
    if (begin < row.end()) {
      Row rest = row.part(begin, row.end());
      had.addLast(rest);
      if (vectors && rest.place().byteSize() < TOGETHER_BYTES) {
        putOff(rest);
      } else {
        readOne(rest);
      }
    }
    if (copies.size() >= CuFile.MAX_PIECES) {
      readPutOff();
      copy();
    }
  }

  private void readOne(Row row) {
    long bytes = row.place().byteSize();
    long offset = row.place().address() - row.base().address();
    reads.read(row.device(), row.base(), offset, row.begin(), bytes, bytes);
  }

  private void putOff(Row row) {
    if (!putOff.isEmpty()
        && (putOff.getLast().device() != row.device()
            || putOff.getLast().end() != row.begin()
            || putOff.size() == CuFile.MAX_PIECES)) {
      readPutOff();
    }
    putOff.add(row);
  }

  private void readPutOff() {
    if (putOff.size() == 1) {
      readOne(putOff.getFirst());
    } else if (!putOff.isEmpty()) {
      Row first = putOff.getFirst();
      reads.readTogether(first.device(), putOff.stream().map(Row::place).toList(), first.begin());
    }
    putOff.clear();
  }

  /// Copies bytes that were read to the other pieces that want them, and waits for the copies.
  private void copy() {
    Map<CudaContext, CopyQueue> queues = new HashMap<>();
    try {
      for (Copy copy : copies) {
        CopyQueue queue = queues.computeIfAbsent(copy.from().device(), CopyQueue::new);
        long from = copy.from().place().address();
        long to = copy.to().place().address();
        long bytes = copy.to().place().byteSize();
        if (copy.from().device() == copy.to().device()) {
          queue.copyOnDevice(to, from, bytes);
        } else {
          queue.copyToPeer(copy.to().device(), to, from, bytes);
          passed.merge(copy.to().device().device(), bytes, Long::sum);
        }
      }
    } finally {
      CopyQueue.closeAll(queues.values());
    }
    copies.clear();
  }

  @Override
  public void close() {
    uses.forEach(RegistrationCache.Use::close);
  }
}
