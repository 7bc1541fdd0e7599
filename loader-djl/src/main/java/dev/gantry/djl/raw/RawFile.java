// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.raw;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.commit.RangeWrite;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.ReadInto;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.ndarray.ArrayMemory;
import java.nio.file.Path;
import java.util.List;

/// Reads the bytes of a file, whatever they mean, into existing memory, and writes them from it, at any
/// offset, address and length.
///
/// ```java
/// RawFile file = RawFile.of(path);
/// file.read(offset, array);
/// file.write(offset, array);
/// ```
///
/// Nothing is held open between calls. Reads may be of any store, writes go to local files. Thread-safe,
/// but a range must not be read while it is written.
public final class RawFile {
  /// Memory, and where in the file its bytes are or go.
  ///
  /// @param offset of the first byte, from the start of the file
  public record Part(long offset, Memory memory) {
    public Part {
      MisuseException.requireGiven("memory", memory);
    }
  }

  private final Location file;
  private final GantrySession session;

  private RawFile(Location file, GantrySession session) {
    this.file = file;
    this.session = session;
  }

  /// Names a file, to be read and written with the process's shared session.
  public static RawFile of(Path file) {
    MisuseException.requireGiven("file", file);
    return new RawFile(Location.of(file), GantrySession.shared());
  }

  /// Names a file of any store by a path or a URL, as [dev.gantry.djl.Weights#open(String)] takes it.
  public static RawFile of(String location) {
    MisuseException.requireGiven("location", location);
    return new RawFile(Location.of(location), GantrySession.shared());
  }

  /// Names a file, to be read and written with a session of yours, which must stay open for as long as this
  /// is used.
  public static RawFile of(Path file, Session session) {
    MisuseException.requireGiven("file", file);
    MisuseException.requireGiven("session", session);
    return new RawFile(Location.of(file), GantrySession.of(session));
  }

  /// Fills an array, on any device, with the bytes from `offset` on; see [#read(List)]. The array must
  /// lie densely in C order, as a slice of rows does, too.
  ///
  /// @throws MisuseException if the array does not lie so; also as [#read(List)]
  public TransferReport read(long offset, NDArray array) {
    try (ArrayMemory memory = ArrayMemory.inPlace(MisuseException.requireGiven("array", array))) {
      return read(offset, memory.memory());
    }
  }

  /// Fills memory with the bytes from `offset` on; see [#read(List)].
  public TransferReport read(long offset, Memory memory) {
    return read(List.of(new Part(offset, memory)));
  }

  /// Fills memory, and returns when all bytes are there. It waits first for work that was queued on the
  /// memory's devices. Many parts at once are faster than one after the other.
  ///
  /// @throws MisuseException if memory is read-only, closed, of another device than it says or not
  ///     all there, or if two parts overlap in memory; nothing has changed then
  /// @throws dev.gantry.core.TransferException if the file cannot be opened or ends before the last byte;
  ///     nothing has changed then
  /// @throws dev.gantry.core.TransferException.IncompleteRead if file or device fail later: it says
  ///     which extents are complete
  public TransferReport read(List<Part> parts) {
    MisuseException.requireGiven("parts", parts);
    return session.read(
        parts.stream()
            .map(part -> {
              Extent extent = new Extent(file, part.offset(), part.memory().length());
              return new ReadInto(extent.toString(), extent, part.memory());
            })
            .toList(),
        TransferOptions.defaults());
  }

  /// Writes an array's bytes to the file from `offset` on; see [#write(List)]. An array that does not lie
  /// densely in C order is copied first.
  public TransferReport write(long offset, NDArray array) {
    try (ArrayMemory memory = ArrayMemory.of(MisuseException.requireGiven("array", array))) {
      return write(offset, memory.memory());
    }
  }

  /// Writes memory to the file from `offset` on; see [#write(List)].
  public TransferReport write(long offset, Memory memory) {
    return write(List.of(new Part(offset, memory)));
  }

  /// Writes memory to the file in place, and returns when the bytes are on the disk. The file is
  /// created if it is not there, and grows if it must; its other bytes stay as they are. After a
  /// failure or a crash the ranges may be written in part: for what must be there as a whole or not
  /// at all, use a [dev.gantry.djl.WeightsWriter] or a [dev.gantry.djl.CheckpointSaver].
  ///
  /// @throws MisuseException if the file is not local, two ranges of it overlap, or memory is closed,
  ///     of another device than it says or not all there; nothing has changed then
  /// @throws dev.gantry.core.TransferException if file or device fail
  public TransferReport write(List<Part> parts) {
    MisuseException.requireGiven("parts", parts);
    return session.write(
        file.path(),
        parts.stream().map(part -> new RangeWrite.Range(part.offset(), part.memory())).toList(),
        WriteOptions.defaults());
  }
}
