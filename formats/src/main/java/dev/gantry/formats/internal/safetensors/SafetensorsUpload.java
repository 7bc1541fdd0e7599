// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.UploadFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// Uploads new weights to another store. Each file is made in a temporary folder of this machine,
/// uploaded and removed, so the disk needs space only for the largest file. Data files are
/// uploaded first and the index last. May be used once.
public final class SafetensorsUpload {
  private final GantrySession session;
  private final Location.Remote target;
  private final boolean oneFile;
  private final WritableStore store;
  private final UnfinishedUpload mark;
  private final List<Location> uploaded = new ArrayList<>();

  /// The files that a killed upload has left.
  private final List<String> leftovers;

  /// @param target a file, or a folder without data files and index, except those that a killed upload has
  ///     left
  /// @throws MisuseException if the store takes no files, or the weights would be mixed up with
  ///     other weights
  /// @throws TransferException if the store does not answer
  public SafetensorsUpload(GantrySession session, Location.Remote target, boolean oneFile) {
    this.session = session;
    this.target = target;
    this.oneFile = oneFile;
    this.store = session.writable(target);
    this.mark = new UnfinishedUpload(session, store, target);
    if (oneFile) {
      Location folder = target.sibling("");
      List<String> beside =
          store.list(folder).orElse(List.of()).stream().map(Location::fileName).toList();
      SafetensorsOutput.requireNone(
          folder, SafetensorsOpener.INDEX_SUFFIX, beside, SafetensorsOutput.HAS_INDEX);
      leftovers = List.of();
    } else {
      List<WritableStore.Entry> there =
          store.below(target).stream().filter(file -> !file.name().contains("/")).toList();
      List<String> names = new ArrayList<>(there.stream().map(WritableStore.Entry::name).toList());
      String reason = "holds weights already";
      SafetensorsOutput.requireNone(target, SafetensorsOpener.INDEX_SUFFIX, names, reason);
      leftovers =
          there.stream().filter(mark.leftovers(there)).map(WritableStore.Entry::name).toList();
      names.removeAll(leftovers);
      SafetensorsOutput.requireNone(target, SafetensorsOpener.FILE_SUFFIX, names, reason);
    }
  }

  /// An object that was uploaded.
  public record Uploaded(Location file, long bytes) {}

  /// Uploads all files. If an upload fails, the files before it are removed, if the store still
  /// answers. A single file replaces an existing file of its name.
  ///
  /// @param made the weights, laid out to be written into `folder`
  /// @throws TransferException if a file cannot be written or uploaded
  public List<Uploaded> upload(UploadFolder folder, NewSafetensors made, WriteOptions options) {
    List<NewFile> files =
        Stream.concat(made.dataFiles().stream().map(NewDataFile::file), made.index().stream())
            .toList();
    List<Uploaded> done = new ArrayList<>();
    long all = files.stream().mapToLong(NewFile::size).sum();
    long before = 0;
    try {
      if (!oneFile) {
        mark.begin(folder, files);
        leftovers.forEach(name -> store.remove(Folder.child(target, name)));
      }
      for (NewFile file : files) {
        done.add(upload(file, options, before, all));
        before += file.size();
      }
      if (!oneFile) {
        mark.end();
      }
      return done;
    } catch (RuntimeException | Error failure) {
      takeBack(failure);
      throw failure;
    }
  }

  private Uploaded upload(NewFile file, WriteOptions options, long before, long all) {
    var _ =
        session.write(
            List.of(file),
            options.withProgress((bytes, _) -> options.progress().onProgress(before + bytes, all)));
    Location at = oneFile ? target : Folder.child(target, file.file().getFileName().toString());
    if (!oneFile) {
      mark.requireOurs();
    }
    // The store may have the file although the upload fails: an interruption may come before its
    // answer.
    uploaded.add(at);
    store.upload(file.file(), at);
    try {
      Files.delete(file.file());
    } catch (IOException e) {
      throw FileErrors.of("delete", file.file().toString(), e);
    }
    return new Uploaded(at, file.size());
  }

  /// Removes the uploaded files after a failure. A single file stays, since it is complete.
  private void takeBack(Throwable failure) {
    // The thread's interruption is cleared during the removal, since a store sends no request on
    // an interrupted thread.
    boolean interrupted = Thread.interrupted();
    try {
      if (!oneFile) {
        mark.requireOurs();
        uploaded.forEach(store::remove);
        mark.end();
      }
    } catch (GantryException besides) {
      failure.addSuppressed(besides);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
