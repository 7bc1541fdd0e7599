// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.OutputFolder;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/// The folder of a set that is being written, by one writer of all processes. The set is there when
/// its index is:
///
/// 1. make the folder; remove from it what an earlier writer of ours left that did not come to its
///    end; make a folder of unfinished work in it
/// 2. write shards there, each by the protocol of [GantrySession#write]: on the disk before it has its name
/// 3. when all of them have their names on the disk, write the index there, likewise
/// 4. move the shards to where they belong, and synchronise
/// 5. move the index, and synchronise
///
/// To take it back goes the other way: the index is back on the disk before any shard goes. So a
/// shard with its own name and no index is ours if an unfinished index names it. Any other is
/// another program's, or of a set that is still being copied, and is never touched. For one thread.
final class ShardFolder {
  /// The name of the folder of unfinished work, which writers of this format alone give.
  static final String UNFINISHED = ".gantry-unfinished";

  private static final Pattern SHARD = Pattern.compile("shard-[0-9]{5}\\.bin");

  private final GantrySession session;
  private final Path folder;
  private final Folders folders;
  private final OutputFolder output;
  private boolean indexMoved;

  private ShardFolder(GantrySession session, Path folder, OutputFolder output) {
    this.session = session;
    this.folder = folder;
    this.folders = session.folders();
    this.output = output;
  }

  static Path index(Path folder) {
    return folder.resolve(ShardSet.FILE_NAME);
  }

  static Path shard(Path folder, int number) {
    return folder.resolve(String.format(Locale.ROOT, "shard-%05d.bin", number));
  }

  /// Where the files of a set are before it is finished.
  static Path unfinished(Path folder) {
    return folder.resolve(UNFINISHED);
  }

  /// Step 1. Until the set is finished or taken back, other writers are refused.
  ///
  /// @throws MisuseException if another writer is at work there, or the folder holds what is not
  ///     ours and in the way
  static ShardFolder prepare(GantrySession session, Path folder) {
    if (Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
      // Said without a trace in a folder that is not for us.
      requireNoSet(folder);
    }
    OutputFolder output = OutputFolder.take(session.folders(), folder, "writer of samples");
    try {
      ShardFolder prepared = new ShardFolder(session, folder, output);
      prepared.begin();
      return prepared;
    } catch (RuntimeException | Error failure) {
      output.takeBack(() -> {}, failure);
      throw failure;
    }
  }

  private void begin() {
    // There may have been an index whose removal is not on the disk yet. After a crash, it must
    // neither be there without its shards nor with those of this set.
    folders.sync(folder);
    requireNoSet(folder);
    clear();
    if (!Files.isDirectory(unfinished(folder), LinkOption.NOFOLLOW_LINKS)) {
      folders.create(unfinished(folder));
    }
  }

  private static void requireNoSet(Path folder) {
    if (Files.exists(index(folder), LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(
          folder + " holds samples already: " + ShardSet.FILE_NAME + "; name another place");
    }
    Path work = unfinished(folder);
    if (Files.exists(work, LinkOption.NOFOLLOW_LINKS)
        && !Files.isDirectory(work, LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(work + " is there, but no folder; name another place");
    }
    List<Path> ours = moved(folder);
    FolderEntries.of(folder).stream()
        .filter(file -> isShard(file) && !ours.contains(file))
        .sorted()
        .findFirst()
        .ifPresent(file -> {
          throw new MisuseException(
              file
                  + " is no unfinished work of a writer's: another program wrote it, or its "
                  + ShardSet.FILE_NAME
                  + " is missing; name another place");
        });
  }

  /// Shards of an unfinished set that have their own names already: those of the unfinished index.
  private static List<Path> moved(Path folder) {
    Path index = index(unfinished(folder));
    if (!isFile(index)) {
      return List.of();
    }
    try {
      return ShardSet.read(index, false).shards().stream()
          .filter(shard -> hasSize(folder.resolve(shard.name()), shard.bytes()))
          .map(shard -> folder.resolve(shard.name()))
          .toList();
    } catch (MalformedFileException _) {
      // No writer's: theirs is whole before it has its name.
      return List.of();
    }
  }

  /// Steps 3 to 5.
  ///
  /// @throws MisuseException if another program has made a file of the set's names meanwhile
  void finish(ShardSet set, WriteOptions options) {
    Path work = unfinished(folder);
    MemorySegment text = MemorySegment.ofArray(set.toJson());
    session.write(List.of(new NewFile(index(work), List.of(new Memory.OnHost(text)))), options);
    for (Shard shard : set.shards()) {
      requireFree(shard.file());
      folders.rename(work.resolve(shard.name()), shard.file());
    }
    folders.sync(folder);
    requireFree(index(folder));
    indexMoved = true;
    folders.rename(index(work), index(folder));
    folders.sync(folder);
    close();
  }

  private static void requireFree(Path file) {
    if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(file + " was made by another program meanwhile");
    }
  }

  /// The set is there: what cannot be tidied up does no harm.
  private void close() {
    try {
      clear();
    } catch (RuntimeException _) {
      // The next writer does it.
    } finally {
      output.release();
    }
  }

  /// Takes back all that was written.
  void takeBack() {
    output.takeBack(this::remove);
  }

  /// As [#takeBack()], after `failure`, which keeps what fails besides.
  void takeBack(Throwable failure) {
    output.takeBack(this::remove, failure);
  }

  private void remove() {
    if (indexMoved && isFile(index(folder))) {
      folders.rename(index(folder), index(unfinished(folder)));
      folders.sync(folder);
    }
    clear();
  }

  /// Removes all unfinished work; last the index that tells of it.
  private void clear() {
    List<Path> moved = moved(folder);
    if (!moved.isEmpty()) {
      moved.forEach(folders::removeFile);
      folders.sync(folder);
    }
    Path work = unfinished(folder);
    List<Path> entries = FolderEntries.of(work);
    entries.stream().filter(ShardFolder::isUnfinished).forEach(folders::removeFile);
    if (isFile(index(work))) {
      folders.removeFile(index(work));
    }
    if (FolderEntries.of(work).isEmpty()) {
      folders.removeFolder(work);
    }
  }

  private static boolean isUnfinished(Path file) {
    return (isShard(file) || TemporaryName.is(file)) && isFile(file);
  }

  private static boolean isShard(Path file) {
    return SHARD.matcher(file.getFileName().toString()).matches();
  }

  private static boolean isFile(Path file) {
    return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
  }

  private static boolean hasSize(Path file, long bytes) {
    return isFile(file) && file.toFile().length() == bytes;
  }
}
