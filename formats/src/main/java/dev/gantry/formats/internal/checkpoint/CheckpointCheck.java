// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.LongConsumer;

/// Reads every byte of a checkpoint, and compares the checksums with those of its manifest.
public final class CheckpointCheck {
  private CheckpointCheck() {}

  /// Returns an error for each damaged file; if the manifest is damaged, only its error. Empty if
  /// the checkpoint was removed during the check.
  ///
  /// @param done called with the number of bytes that were read of each file
  /// @throws TransferException if a file cannot be read for now, which is no damage
  public static Optional<List<MalformedFileException>> damage(
      GantrySession session, CheckpointFolder checkpoint, LongConsumer done) {
    List<Manifest.FileEntry> entries;
    try {
      entries = checkpoint.manifest().files();
    } catch (MalformedFileException damaged) {
      return Optional.of(List.of(damaged));
    } catch (TransferException failed) {
      if (failed.isNotFound()) {
        return Optional.empty();
      }
      throw failed;
    }
    List<MalformedFileException> found = new ArrayList<>();
    for (Manifest.FileEntry entry : entries) {
      Location file = checkpoint.file(entry.name());
      try {
        check(session, checkpoint, file, entry);
      } catch (MalformedFileException damaged) {
        found.add(damaged);
      } catch (TransferException failed) {
        if (!isDamage(failed)) {
          throw failed;
        }
        found.add(
            new MalformedFileException(file, 0, "unreadable", String.valueOf(failed.getMessage())));
      }
      done.accept(entry.size());
    }
    return found.isEmpty() || checkpoint.isThere() ? Optional.of(found) : Optional.empty();
  }

  private static void check(
      GantrySession session, CheckpointFolder checkpoint, Location file, Manifest.FileEntry entry) {
    checkpoint.checkSize(entry);
    List<StoredTensor> tensors =
        entry.tensors().isEmpty()
            ? List.of()
            : List.copyOf(SafetensorsOpener.open(session, file).tensors().values());
    long start = tensors.isEmpty() ? entry.size() : tensors.getFirst().extent().offset();
    List<Extent> parts = new ArrayList<>(List.of(new Extent(file, 0, start)));
    tensors.forEach(tensor -> parts.add(tensor.extent()));
    int[] sums = session.checksums(parts);
    int whole = sums[0];
    for (int i = 1; i < sums.length; i++) {
      whole = Crc32c.combine(whole, sums[i], parts.get(i).length());
    }
    if (whole == entry.crc32c()) {
      return;
    }
    for (int i = 1; i < sums.length; i++) {
      StoredTensor tensor = tensors.get(i - 1);
      if (entry.tensors().containsKey(tensor.name())) {
        checkpoint.check(tensor, sums[i]);
      }
    }
    CheckpointFolder.requireSame(file, whole, entry.crc32c());
  }

  /// Whether a failure to read a checkpoint means that it is damaged, rather than unreadable for now: a lost
  /// sector (EIO) and a file that is too short are damage.
  public static boolean isDamage(GantryException failed) {
    if (!(failed instanceof TransferException transfer)) {
      return true;
    }
    return switch (transfer.failure()) {
      case Failure.Errno(_, String name, _) -> name.equals("EIO");
      case Failure.EndOfFile _, Failure.Malformed _ -> true;
      case Failure.CuFile _,
          Failure.Cuda _,
          Failure.Torch _,
          Failure.Remote _,
          Failure.NothingWritten _,
          Failure.Cancelled _ ->
          false;
    };
  }
}
