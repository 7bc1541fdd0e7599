// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.FolderLock;
import dev.gantry.formats.internal.files.OutputFolder;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
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
/// another program's, or of a set that is still being copied, and is never touched.
///
/// A set that replaces another has shards of other names, and a copy of the other's index is in the
/// folder of unfinished work before step 5, which replaces the index at once. The other's shards go
/// after that. It cannot be taken back any more then. For one thread.
final class ShardFolder {
  /// The name of the folder of unfinished work, which writers of this format alone give.
  static final String UNFINISHED = ".gantry-unfinished";

  /// The index of the set that is replaced, in the folder of unfinished work.
  private static final String REPLACED = "replaced.json";

  private static final int MOST_TRIES = 100;

  private static final Pattern SHARD = Pattern.compile("shard-[0-9]{5}(-[0-9a-f]{8})?\\.bin");
  private static final Pattern PART = Pattern.compile("part-[0-9A-Za-z-]{1,200}");

  private final GantrySession session;
  private final Path folder;
  private final Folders folders;
  private final OutputFolder output;
  private final boolean mayReplace;

  /// The set that is to be replaced.
  private Optional<ShardSet> replaced = Optional.empty();

  private boolean indexMoved;

  private ShardFolder(GantrySession session, Path folder, OutputFolder output, boolean mayReplace) {
    this.session = session;
    this.folder = folder;
    this.folders = session.folders();
    this.output = output;
    this.mayReplace = mayReplace;
  }

  static Path index(Path folder) {
    return folder.resolve(ShardSet.FILE_NAME);
  }

  static Path shard(Path folder, int number) {
    return folder.resolve(String.format(Locale.ROOT, "shard-%05d.bin", number));
  }

  /// A shard that has a name of its own in this folder, also after the set is replaced: what is known of
  /// a file is never taken for another one's.
  ///
  /// @param set distinguishes the set's names from those of other sets
  static Path shard(Path folder, int number, int set) {
    return folder.resolve(String.format(Locale.ROOT, "shard-%05d-%08x.bin", number, set));
  }

  /// The folder of a set's files before the set is finished.
  static Path unfinished(Path folder) {
    return folder.resolve(UNFINISHED);
  }

  /// The folder in which one of several processes writes its part of a set.
  ///
  /// @throws MisuseException if it is no name for a folder
  static Path part(Path folder, String name) {
    String part = "part-" + name;
    if (!PART.matcher(part).matches()) {
      throw new MisuseException(
          "a part's name has 1 to 200 letters, digits and hyphens (was '" + name + "')");
    }
    return unfinished(folder).resolve(part);
  }

  static ShardFolder prepare(GantrySession session, Path folder) {
    return prepare(session, folder, false);
  }

  /// Step 1. Until the set is finished or taken back, other writers are refused.
  ///
  /// @param mayReplace whether a set that is there is replaced when this one is finished
  /// @throws MisuseException if another writer is at work there, or the folder holds what is not
  ///     ours and in the way
  static ShardFolder prepare(GantrySession session, Path folder, boolean mayReplace) {
    if (Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
      // Said without a trace in a folder that is not for us.
      Optional<ShardSet> _ = requireFree(session, folder, mayReplace);
    }
    OutputFolder output = OutputFolder.take(session.folders(), folder, "writer of samples");
    return Cleanup.orUndo(
        () -> {
          ShardFolder prepared = new ShardFolder(session, folder, output, mayReplace);
          prepared.begin();
          return prepared;
        },
        () -> output.takeBack(() -> {}));
  }

  private void begin() {
    // There may have been an index whose removal is not on the disk yet. After a crash, it must
    // neither be there without its shards nor with those of this set.
    folders.sync(folder);
    replaced = requireFree(session, folder, mayReplace);
    clear();
    if (!Files.isDirectory(unfinished(folder), LinkOption.NOFOLLOW_LINKS)) {
      folders.create(unfinished(folder));
    }
  }

  /// @return the set that is there
  /// @throws MisuseException if there is one and it may not be replaced, or a file is in the way
  private static Optional<ShardSet> requireFree(
      GantrySession session, Path folder, boolean mayReplace) {
    Path index = index(folder);
    boolean isThere = Files.exists(index, LinkOption.NOFOLLOW_LINKS);
    if (isThere && !mayReplace) {
      throw new MisuseException(
          folder + " holds samples already: " + ShardSet.FILE_NAME + "; name another place");
    }
    Optional<ShardSet> there =
        isThere ? Optional.of(ShardSet.read(session, Location.of(index), false)) : Optional.empty();
    Path work = unfinished(folder);
    if (Files.exists(work, LinkOption.NOFOLLOW_LINKS)
        && !Files.isDirectory(work, LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(work + " is there, but no folder; name another place");
    }
    List<Path> ours = new ArrayList<>(left(session, folder));
    there.ifPresent(set -> set.shards().forEach(shard -> ours.add(shard.file())));
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
    return there;
  }

  /// Shards of ours beside the index that are of no set: those of an unfinished set that have their
  /// own names already, and those of one that was replaced.
  private static List<Path> left(GantrySession session, Path folder) {
    List<Path> left = new ArrayList<>(shards(session, folder, index(unfinished(folder))));
    List<Path> replaced = shards(session, folder, unfinished(folder).resolve(REPLACED));
    if (!replaced.isEmpty() && isFile(index(folder))) {
      List<Path> used = shards(session, folder, index(folder));
      replaced.stream()
          .filter(shard -> !used.isEmpty() && !used.contains(shard))
          .forEach(left::add);
    }
    return left;
  }

  /// The shards that an index names and that are in the folder.
  private static List<Path> shards(GantrySession session, Path folder, Path index) {
    if (!isFile(index)) {
      return List.of();
    }
    try {
      return ShardSet.read(session, Location.of(index), false).shards().stream()
          .filter(shard -> hasSize(folder.resolve(shard.name()), shard.bytes()))
          .map(shard -> folder.resolve(shard.name()))
          .toList();
    } catch (MalformedFileException _) {
      // No writer's: theirs is whole before it has its name.
      return List.of();
    }
  }

  /// As [#finish(ShardSet, List, WriteOptions)], of shards that are in the folder of unfinished work.
  void finish(ShardSet set, WriteOptions options) {
    Path work = unfinished(folder);
    finish(set, set.shards().stream().map(shard -> work.resolve(shard.name())).toList(), options);
  }

  /// Steps 3 to 5.
  ///
  /// @param files where the set's shards are
  /// @throws MisuseException if another program has made a file of the set's names meanwhile
  void finish(ShardSet set, List<Path> files, WriteOptions options) {
    Path work = unfinished(folder);
    replaced.ifPresent(old -> write(work.resolve(REPLACED), old, options));
    write(index(work), set, options);
    for (int i = 0; i < files.size(); i++) {
      Path target = set.shards().get(i).file();
      requireFree(target);
      folders.rename(files.get(i), target);
    }
    folders.sync(folder);
    if (replaced.isEmpty()) {
      requireFree(index(folder));
    }
    indexMoved = true;
    folders.rename(index(work), index(folder));
    folders.sync(folder);
    close();
  }

  private void write(Path file, ShardSet set, WriteOptions options) {
    MemorySegment text = MemorySegment.ofArray(set.toJson());
    session.write(List.of(new NewFile(file, List.of(new Memory.OnHost(text)))), options);
  }

  private static void requireFree(Path file) {
    if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(file + " was made by another program meanwhile");
    }
  }

  /// The set is there: what cannot be tidied up does no harm.
  private void close() {
    try {
      clearAll();
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

  private void remove() {
    if (indexMoved && replaced.isEmpty() && isFile(index(folder))) {
      folders.rename(index(folder), index(unfinished(folder)));
      folders.sync(folder);
    }
    clearAll();
  }

  /// Also what another process, told to end, adds to its part meanwhile. None can add a part to a
  /// folder that is gone.
  private void clearAll() {
    clear();
    for (int i = 0; i < MOST_TRIES && Files.isDirectory(unfinished(folder)); i++) {
      clear();
    }
  }

  /// Removes all unfinished work; last the indexes that tell of it.
  private void clear() {
    List<Path> left = left(session, folder);
    if (!left.isEmpty()) {
      left.forEach(folders::removeFile);
      folders.sync(folder);
    }
    Path work = unfinished(folder);
    List<Path> entries = FolderEntries.of(work);
    entries.stream().filter(ShardFolder::isPart).forEach(this::removePart);
    removeFiles(work);
    for (Path index : List.of(work.resolve(REPLACED), index(work))) {
      if (isFile(index)) {
        folders.removeFile(index);
      }
    }
    removeIfEmpty(work);
  }

  /// Removes what a writer has left of a part, finished or not.
  private void removePart(Path part) {
    removeFiles(unfinished(part));
    for (Path file : List.of(index(unfinished(part)), index(part), FolderLock.file(part))) {
      if (isFile(file)) {
        folders.removeFile(file);
      }
    }
    removeIfEmpty(unfinished(part));
    removeFiles(part);
    removeIfEmpty(part);
  }

  private void removeFiles(Path of) {
    FolderEntries.of(of).stream().filter(ShardFolder::isUnfinished).forEach(folders::removeFile);
  }

  private void removeIfEmpty(Path of) {
    if (FolderEntries.of(of).isEmpty()) {
      folders.removeFolder(of);
    }
  }

  private static boolean isPart(Path entry) {
    return PART.matcher(entry.getFileName().toString()).matches()
        && Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS);
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
