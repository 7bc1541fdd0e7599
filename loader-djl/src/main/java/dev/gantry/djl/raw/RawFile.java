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
import java.util.stream.Stream;

/// Reads raw byte ranges of a file into existing memory, and writes memory to them. Offsets,
/// addresses and lengths need no alignment.
///
/// ```java
/// RawFile file = RawFile.of(path);
/// file.read(offset, array);
/// file.write(offset, array);
/// ```
///
/// No file stays open between calls. Files of any store can be read; only local files can be
/// written. Thread-safe, but a range must not be read while it is written.
public final class RawFile {
  /// Memory, and the range of the file that belongs to it.
  ///
  /// @param offset the offset of the range's first byte in the file, in bytes
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

  /// Returns a local file, read and written with the process's shared session.
  public static RawFile of(Path file) {
    MisuseException.requireGiven("file", file);
    return new RawFile(Location.of(file), GantrySession.shared());
  }

  /// Returns a file of any store, by a path or URL as in [dev.gantry.djl.Weights#open(String)].
  public static RawFile of(String location) {
    MisuseException.requireGiven("location", location);
    return new RawFile(Location.of(location), GantrySession.shared());
  }

  /// Returns a local file, read and written with your session, which must stay open while this is
  /// used.
  public static RawFile of(Path file, Session session) {
    MisuseException.requireGiven("file", file);
    MisuseException.requireGiven("session", session);
    return new RawFile(Location.of(file), GantrySession.of(session));
  }

  /// Fills an array, on any device, with the bytes from `offset` on; see [#read(List)]. The array
  /// must be dense in C order; a slice of rows is dense, too.
  ///
  /// @throws MisuseException if the array is not dense in C order; also as [#read(List)]
  public TransferReport read(long offset, NDArray array) {
    try (ArrayMemory memory = ArrayMemory.inPlace(MisuseException.requireGiven("array", array))) {
      return read(offset, memory.memory());
    }
  }

  /// Fills memory with the bytes from `offset` on; see [#read(List)].
  public TransferReport read(long offset, Memory memory) {
    return read(List.of(new Part(offset, memory)));
  }

  /// Fills memory, and returns when all bytes have arrived. It first waits for work that was
  /// queued on the memory's devices. One call with many parts is faster than many calls.
  ///
  /// @throws MisuseException if memory is read-only, closed, on another device than it says, or
  ///     not fully accessible, or if two parts overlap in memory; nothing has changed then
  /// @throws dev.gantry.core.TransferException if the file cannot be opened or is too short;
  ///     nothing has changed then
  /// @throws dev.gantry.core.TransferException.IncompleteRead if the file or device fails later;
  ///     the exception says which extents are complete
  public TransferReport read(List<Part> parts) {
    return session.read(
        given(parts)
            .map(part -> {
              Extent extent = new Extent(file, part.offset(), part.memory().length());
              return new ReadInto(extent.toString(), extent, part.memory());
            })
            .toList(),
        TransferOptions.defaults());
  }

  /// Writes an array's bytes to the file from `offset` on; see [#write(List)]. An array that is
  /// not dense in C order is copied first.
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
  /// created if it does not exist, and grows if necessary; its other bytes stay unchanged. After a
  /// failure or a crash, the ranges may be written in part. For an atomic write, use a
  /// [dev.gantry.djl.WeightsWriter] or a [dev.gantry.djl.CheckpointSaver].
  ///
  /// @throws MisuseException if the file is not local, if two of its ranges overlap, or if memory
  ///     is closed, on another device than it says, or not fully accessible; nothing has changed
  ///     then
  /// @throws dev.gantry.core.TransferException if the file or device fails
  public TransferReport write(List<Part> parts) {
    return session.write(
        file.path(),
        given(parts).map(part -> new RangeWrite.Range(part.offset(), part.memory())).toList(),
        WriteOptions.defaults());
  }

  private static Stream<Part> given(List<Part> parts) {
    return MisuseException.requireGiven("parts", parts).stream()
        .map(part -> MisuseException.requireGiven("a part", part));
  }
}
