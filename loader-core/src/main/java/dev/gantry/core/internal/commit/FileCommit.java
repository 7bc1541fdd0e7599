// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.plan.WritePlan;
import dev.gantry.core.internal.plan.WritePlan.Piece;
import dev.gantry.core.internal.plan.WritePlan.Write;
import dev.gantry.core.internal.plan.WritePlanner;
import dev.gantry.core.internal.transport.FileTransport;
import dev.gantry.core.internal.transport.TransferEngine;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Writes one file in steps, so that a crash at any point leaves either the old file or the
/// complete new file:
///
/// 1. Create a file with a unique temporary name in the target's folder, and hold its lock until
///    step 6.
/// 2. Allocate disk space for all of its blocks.
/// 3. Write whole blocks in any order, the last block padded with zeros.
/// 4. Trim the file to its true size.
/// 5. Synchronise the file.
/// 6. Rename the file to its target.
/// 7. Synchronise the folder.
///
/// If a step before step 6 fails, the file is removed, and nothing has changed. A failed step 5 is
/// not repeated, since the kernel may have dropped bytes that it could not write, and a second
/// `fsync` would report success. If step 7 fails, the new file has its name, but a crash may bring
/// the old file back.
///
/// [#open], [#transport] and [#written] are thread-safe. Only one thread may call the other methods, when no
/// write is running.
final class FileCommit {
  /// One write of a file.
  ///
  /// @param number the write's index in the file's plan
  record WriteTask(FileCommit file, int number) {
    Write write() {
      return file.plan.writes().get(number);
    }

    /// Returns the sources of the write's bytes, in order. Sources that are adjacent in memory or
    /// in a file are joined.
    List<Source> slices() {
      Slices slices = new Slices();
      for (Piece piece : write().pieces()) {
        Source part = file.file.parts().get(piece.part());
        slices.add(part.slice(piece.partOffset(), piece.length()));
      }
      return slices.all();
    }
  }

  private final TransferEngine engine;
  private final NewFile file;
  private final WritePlan plan;
  private final WriteOptions options;
  private final boolean held;
  private final AtomicInteger writesLeft;

  /// The checksums of all pieces, by the index of the write and the index of the piece.
  private final int[][] checksums;

  /// The open file; null before [#open].
  private @Nullable TargetFile target;

  private @Nullable FileTransport transport;

  /// The exception of the first call of [#open], which later calls throw again; null if it
  /// succeeded.
  private @Nullable RuntimeException unusable;

  private boolean renamed;

  /// @param held whether the file stays open, with its lock held, until it is renamed; false if
  ///     the operation has more files than the process may have open
  FileCommit(TransferEngine engine, NewFile file, WriteOptions options, boolean held) {
    this.engine = engine;
    this.file = file;
    this.options = options;
    plan =
        WritePlanner.plan(
            file.parts().stream().map(Source::length).toList(), options.requestBytes());
    this.held = held;
    writesLeft = new AtomicInteger(plan.writes().size());
    checksums = new int[plan.writes().size()][];
  }

  NewFile file() {
    return file;
  }

  /// Returns the file's size in bytes.
  long size() {
    return plan.size();
  }

  Stream<WriteTask> tasks() {
    return IntStream.range(0, plan.writes().size()).mapToObj(number -> new WriteTask(this, number));
  }

  /// Returns the devices that hold parts of the file.
  static Stream<Device.Cuda> devices(NewFile file) {
    return file.parts().stream()
        .flatMap(part ->
            part instanceof Memory.OnDevice memory ? Stream.of(memory.device()) : Stream.empty());
  }

  /// Returns the open file. The first call does steps 1 and 2.
  synchronized TargetFile open() {
    if (unusable != null) {
      throw unusable;
    }
    TargetFile opened = target;
    if (opened == null) {
      try {
        opened = TargetFile.create(engine.calls(), file.file(), options.pageCache(), held);
        target = opened;
        opened.allocate(plan.paddedSize());
        transport = transport(opened);
      } catch (RuntimeException e) {
        unusable = e;
        throw e;
      }
    }
    return opened;
  }

  /// Chooses a transport for the parts in device memory. All other parts are written by `host`.
  private FileTransport transport(TargetFile opened) {
    Optional<Device.Cuda> device = devices(file).findFirst();
    return new FileTransport(
        Location.of(file.file()),
        opened.descriptors(),
        device.isPresent() ? device.get() : Device.HOST,
        device.isPresent() ? options.transport() : null,
        engine.cuFile(),
        false);
  }

  /// Returns the transport for device memory. [#open] must have been called.
  synchronized FileTransport transport() {
    return Objects.requireNonNull(transport);
  }

  /// Notes that step 3 is done for one write. After the last write, does steps 4 and 5.
  ///
  /// @param sums the checksum of each of the write's pieces; empty if checksums are not wanted
  void written(int write, int[] sums) {
    checksums[write] = sums;
    if (writesLeft.decrementAndGet() == 0) {
      finish();
    }
  }

  /// Does steps 4 and 5.
  void finish() {
    TargetFile opened = open();
    opened.truncate(plan.size());
    opened.sync();
    if (!held) {
      close();
    }
  }

  /// Does step 6.
  void rename(Folders folders) {
    folders.rename(open().file(), file.file());
    renamed = true;
    close();
  }

  /// Closes the file, whichever step it has reached, and removes it unless it was renamed.
  ///
  /// @param failure receives failures of this call as suppressed exceptions
  void abandon(Folders folders, Throwable failure) {
    TargetFile opened = target;
    Runnable remove =
        opened == null || renamed ? () -> {} : () -> folders.removeFile(opened.file());
    Cleanup.runAll(List.of(remove, this::close), failure);
  }

  private synchronized void close() {
    try (var _ = target;
        var _ = transport) {}
  }

  WriteReport.FileReport report() {
    String directAbsence = open().directAbsence();
    boolean chosen = options.transport() == null && !plan.writes().isEmpty();
    String reason = chosen ? transport().report().reason() : "";
    return new WriteReport.FileReport(
        file.file(), plan.size(), checksums(), reason.isEmpty() ? directAbsence : reason);
  }

  private Optional<WriteReport.Checksums> checksums() {
    if (!options.checksums()) {
      return Optional.empty();
    }
    int whole = Crc32c.OF_NOTHING;
    List<Integer> parts = new ArrayList<>(file.parts().size());
    file.parts().forEach(_ -> parts.add(Crc32c.OF_NOTHING));
    for (int i = 0; i < plan.writes().size(); i++) {
      Write write = plan.writes().get(i);
      for (int j = 0; j < write.pieces().size(); j++) {
        Piece piece = write.pieces().get(j);
        int sum = checksums[i][j];
        whole = Crc32c.combine(whole, sum, piece.length());
        parts.set(piece.part(), Crc32c.combine(parts.get(piece.part()), sum, piece.length()));
      }
    }
    return Optional.of(new WriteReport.Checksums(whole, parts));
  }
}
