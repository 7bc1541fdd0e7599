package dev.gantry.formats.shards;

import dev.gantry.core.Gantry;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.commit.Folders;
import dev.gantry.core.commit.NewFile;
import dev.gantry.core.commit.Source;
import dev.gantry.core.commit.TemporaryName;
import dev.gantry.formats.internal.FolderEntries;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/// The folder of a set that is being written. The set is there when its index is:
///
/// 1. make the folder, or make sure on the disk that there is no index in it; then remove from it
///    what an earlier writer left that did not come to its end
/// 2. write shards, each by the protocol of [Gantry#write]: on the disk before it has its name
/// 3. when all of them have their names on the disk, write the index, likewise
///
/// To take it back goes the other way: the index is gone on the disk before any shard is.
///
/// Only files with names that writers of this format give are ever removed. For one thread.
final class ShardFolder {
  private static final Pattern SHARD = Pattern.compile("shard-[0-9]{5}\\.bin");

  private final Gantry session;
  private final Path folder;
  private final Folders folders;
  private boolean made;
  private boolean indexBegun;

  ShardFolder(Gantry session, Path folder) {
    this.session = session;
    this.folder = folder;
    this.folders = session.folders();
  }

  static Path index(Path folder) {
    return folder.resolve(ShardSet.FILE_NAME);
  }

  static Path shard(Path folder, int number) {
    return folder.resolve(String.format(Locale.ROOT, "shard-%05d.bin", number));
  }

  /// Step 1.
  ///
  /// @throws MisuseException if there is an index, or something else where a file is to be
  void prepare() {
    if (!Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
      make();
      return;
    }
    if (!Files.isDirectory(folder)) {
      throw new MisuseException(folder + " is there, but no folder");
    }
    if (Files.exists(index(folder), LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(
          folder + " holds samples already: " + ShardSet.FILE_NAME + "; name another place");
    }
    // There may have been an index whose removal is not on the disk yet. After a crash, it must
    // neither be there without its shards nor with those of this set.
    folders.sync(folder);
    removeLeftovers();
  }

  private void make() {
    made = true;
    try {
      folders.create(folder);
    } catch (TransferException failure) {
      try {
        folders.removeFolder(folder);
      } catch (TransferException besides) {
        failure.addSuppressed(besides);
      }
      throw failure;
    }
  }

  /// Step 3.
  void writeIndex(NewShardSet plan, ShardSet set) {
    MemorySegment text = MemorySegment.ofArray(ShardIndexWriter.bytes(set));
    indexBegun = true;
    session.write(
        List.of(new NewFile(set.file(), List.of(new Source.HostMemory(text)))),
        plan.options().write());
  }

  /// Takes back all that was written.
  void takeBack() {
    if (indexBegun) {
      folders.removeFile(index(folder));
      folders.sync(folder);
    }
    removeLeftovers();
    if (made && FolderEntries.of(folder).isEmpty()) {
      folders.removeFolder(folder);
    }
  }

  /// As [#takeBack()], after `failure`, which keeps what fails besides.
  void takeBack(Throwable failure) {
    try {
      takeBack();
    } catch (RuntimeException besides) {
      failure.addSuppressed(besides);
    }
  }

  private void removeLeftovers() {
    leftovers().forEach(folders::removeFile);
  }

  private List<Path> leftovers() {
    List<Path> found =
        FolderEntries.of(folder).stream().filter(ShardFolder::hasNameOfOurs).sorted().toList();
    for (Path file : found) {
      if (Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
        throw new MisuseException(file + " is there, but no file; name another place");
      }
    }
    return found;
  }

  private static boolean hasNameOfOurs(Path file) {
    return TemporaryName.is(file) || SHARD.matcher(file.getFileName().toString()).matches();
  }
}
