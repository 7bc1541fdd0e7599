package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.plan.WritePlan;
import dev.gantry.core.internal.plan.WritePlan.Piece;
import dev.gantry.core.internal.plan.WritePlan.Write;
import dev.gantry.core.internal.plan.WritePlanner;
import dev.gantry.core.internal.store.Descriptors;
import dev.gantry.core.internal.transport.CuFilePath;
import dev.gantry.core.internal.transport.FallbackEvent;
import dev.gantry.core.internal.transport.Transports;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One file on its way to the disk, by the protocol that lets a crash at any point leave the old
/// file or the new one:
///
/// 1. make a file of a name that nobody else has, in the target's folder
/// 2. allocate room for all of its blocks
/// 3. write whole blocks, the last one padded with zeros, in any order
/// 4. trim the file to its true size
/// 5. synchronise the file
/// 6. rename it to its target
/// 7. synchronise the folder
///
/// A file that fails before 6 is removed, and nothing has changed; after a failed 5 too, since the
/// kernel may have dropped what it could not write, and a second `fsync` would call that well. When
/// 7 fails, the new file is there, but a crash may bring the old one back.
///
/// [#open], [#written] and [#fallBack] are thread-safe; the rest is for one thread, when no write
/// is under way.
final class FileCommit {
  private static final Logger LOG = LoggerFactory.getLogger(FileCommit.class);

  private final Transports paths;
  private final NewFile file;
  private final WritePlan plan;
  private final WriteOptions options;
  private final Path temporary;
  private final AtomicInteger writesLeft;

  /// By write and piece; written by whoever makes the write.
  private final int[][] checksums;

  /// Null before [#open].
  private @Nullable TargetFile target;

  /// Why there is no writing to the file, for all who come to [#open] after the first.
  private @Nullable RuntimeException unusable;

  /// Owned, also where it serves no more.
  private @Nullable CuFilePath cuFile;

  private boolean straight;
  private String reason = "";
  private boolean renamed;

  FileCommit(Transports paths, NewFile file, WriteOptions options) {
    this.paths = paths;
    this.file = file;
    this.options = options;
    plan =
        WritePlanner.plan(
            file.parts().stream().map(Source::length).toList(), options.requestBytes());
    temporary = TemporaryName.beside(file.file());
    writesLeft = new AtomicInteger(plan.writes().size());
    checksums = new int[plan.writes().size()][];
  }

  NewFile file() {
    return file;
  }

  WritePlan plan() {
    return plan;
  }

  /// What a write is made of, in order; what lies together in memory or a file is one.
  List<Source> slices(Write write) {
    Slices slices = new Slices();
    for (Piece piece : write.pieces()) {
      slices.add(file.parts().get(piece.part()).slice(piece.partOffset(), piece.length()));
    }
    return slices.all();
  }

  /// The open file: whoever comes first makes steps 1 and 2.
  synchronized TargetFile open() {
    if (unusable != null) {
      throw unusable;
    }
    TargetFile opened = target;
    if (opened == null) {
      try {
        opened = new TargetFile(paths.calls(), temporary, file.file(), options.pageCache());
        target = opened;
        opened.allocate(plan.paddedSize());
        chooseCuFile(opened);
      } catch (RuntimeException e) {
        unusable = e;
        throw e;
      }
    }
    return opened;
  }

  private void chooseCuFile(TargetFile opened) {
    Optional<Device.Cuda> device = WriteOperation.devices(file).findFirst();
    if (device.isEmpty() || options.transport() == Transport.STAGED) {
      return;
    }
    Transport wanted = options.transport() == null ? Transport.GDS : options.transport();
    Descriptors descriptors =
        new Descriptors(
            file.file(),
            opened.bufferedDescriptor(),
            opened.directDescriptor(),
            opened.directAbsence());
    switch (paths.cuFile().pathTo(descriptors, CudaContext.of(device.get()), wanted)) {
      case Availability.Present<CuFilePath>(CuFilePath present) -> {
        cuFile = present;
        straight = true;
      }
      case Availability.Absent<CuFilePath>(String absence) -> {
        if (options.transport() != null) {
          throw Transports.unavailable(options.transport(), file.file() + ": " + absence);
        }
        reason = "no gds: " + absence;
      }
    }
  }

  /// The way straight from device memory, once the file is open; empty where there is none.
  synchronized Optional<CuFilePath> straight() {
    return straight ? Optional.ofNullable(cuFile) : Optional.empty();
  }

  /// From here on everything is staged, since cuFile refused.
  ///
  /// @throws TransferException if only cuFile was wanted
  synchronized void fallBack(TransferException failed) {
    if (options.transport() != null) {
      throw failed;
    }
    if (straight) {
      straight = false;
      reason = failed.getMessage();
      LOG.info("{}: falling back to {}: {}", file.file(), Transport.STAGED, reason);
      new FallbackEvent(file.file().toString(), Transport.STAGED.toString(), reason).commit();
    }
  }

  /// Step 3 has come so far; after the last write, the writer makes steps 4 and 5.
  ///
  /// @param write the number of a write that is done
  /// @param sums the checksum of each of its pieces, if they are wanted
  void written(int write, int[] sums) {
    checksums[write] = sums;
    if (writesLeft.decrementAndGet() == 0) {
      finish();
    }
  }

  /// Steps 4 and 5.
  void finish() {
    TargetFile opened = open();
    opened.truncate(plan.size());
    opened.sync();
    close();
  }

  /// Step 6.
  void rename(Folders folders) {
    folders.rename(temporary, file.file());
    renamed = true;
  }

  /// Closes the file wherever it stands, and removes it where it has not got its name.
  ///
  /// @param failure keeps what fails besides
  void abandon(Folders folders, Throwable failure) {
    try {
      try {
        close();
      } finally {
        if (target != null && !renamed) {
          folders.removeFile(temporary);
        }
      }
    } catch (RuntimeException besides) {
      failure.addSuppressed(besides);
    }
  }

  private synchronized void close() {
    try {
      if (cuFile != null) {
        cuFile.close();
        cuFile = null;
      }
    } finally {
      if (target != null) {
        target.close();
      }
    }
  }

  WriteReport.FileReport report() {
    String why = reason.isEmpty() ? open().directAbsence() : reason;
    return new WriteReport.FileReport(file.file(), plan.size(), checksums(), why);
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
