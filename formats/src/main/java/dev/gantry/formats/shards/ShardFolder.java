// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.JointFiles;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;
import java.util.Set;
import java.util.regex.Pattern;

/// The folder of a set that one writer of all processes is writing. The set exists when its index does.
/// [JointFiles] finishes the set or takes it back, with the index as its list. A shard without an index is
/// removed only if an unfinished index names it: any other belongs to another program, or to a set that is
/// still being copied. Not thread-safe.
final class ShardFolder implements ShardWriter.Output {
  private static final Pattern SHARD = Pattern.compile("shard-[0-9]{5}(-[0-9a-f]{8})?\\.bin");

  private final JointFiles files;

  private ShardFolder(JointFiles files) {
    this.files = files;
  }

  static Path index(Path folder) {
    return folder.resolve(ShardSet.FILE_NAME);
  }

  static Path shard(Path folder, int number) {
    return folder.resolve(String.format(Locale.ROOT, "shard-%05d.bin", number));
  }

  /// The path of a shard. Its name differs from those of the folder's other sets, before and after, so that
  /// nobody takes a file for one of another set.
  ///
  /// @param set a number that distinguishes this set's names from those of other sets
  static Path shard(Path folder, int number, int set) {
    return folder.resolve(String.format(Locale.ROOT, "shard-%05d-%08x.bin", number, set));
  }

  /// Takes the folder: other writers are refused until the set is finished or taken back.
  ///
  /// @param mayReplace whether a set that is there is replaced when this one is finished
  /// @throws MisuseException if another writer is at work there, or the folder holds files of others that
  ///     are in the way
  static ShardFolder prepare(GantrySession session, Path folder, boolean mayReplace) {
    if (Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
      // This check comes before the folder is touched, so that a refusal leaves no trace there.
      requireFree(session, folder, mayReplace);
    }
    return new ShardFolder(
        JointFiles.begin(
            session, folder, ShardSet.FILE_NAME, index -> sizes(session, index), mayReplace));
  }

  private static void requireFree(GantrySession session, Path folder, boolean mayReplace) {
    Path index = index(folder);
    if (!mayReplace) {
      JointFiles.requireNone(folder, ShardSet.FILE_NAME, "samples");
    }
    JointFiles.requireNone(folder, JointFiles.LIST, "TFRecord files");
    Path work = JointFiles.unfinished(folder);
    if (Files.exists(work, LinkOption.NOFOLLOW_LINKS)
        && !Files.isDirectory(work, LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(work + " exists and is not a folder; name another path");
    }
    Set<Path> ours = new HashSet<>(JointFiles.known(folder, index, file -> sizes(session, file)));
    FolderEntries.of(folder).stream()
        .filter(file -> isShard(file.getFileName().toString()))
        .filter(file -> !ours.contains(file))
        .sorted()
        .findFirst()
        .ifPresent(file -> {
          throw new MisuseException(
              file
                  + " is not unfinished work of a writer: another program wrote it, or its "
                  + ShardSet.FILE_NAME
                  + " is missing; name another place");
        });
  }

  /// Whether a file has the name of a shard.
  static boolean isShard(String name) {
    return SHARD.matcher(name).matches();
  }

  /// Returns the sizes of the shards that an index names.
  private static SequencedMap<String, Long> sizes(GantrySession session, Path index) {
    SequencedMap<String, Long> sizes = new LinkedHashMap<>();
    if (Files.isRegularFile(index, LinkOption.NOFOLLOW_LINKS)) {
      ShardSet.read(session, Location.of(index), false)
          .shards()
          .forEach(shard -> sizes.put(shard.name(), shard.bytes()));
    }
    return sizes;
  }

  /// @throws MisuseException if another program has made a file of the set's names meanwhile
  @Override
  public void finish(ShardSet set, WriteOptions options) {
    finish(set, set.shards().stream().map(Shard::name).toList(), options);
  }

  /// Finishes the set as [#finish(ShardSet, WriteOptions)] does, where the shards have other names among
  /// the unfinished work.
  void finish(ShardSet set, List<String> unfinished, WriteOptions options) {
    List<JointFiles.Part> parts = new ArrayList<>();
    for (int i = 0; i < unfinished.size(); i++) {
      parts.add(new JointFiles.Part(unfinished.get(i), set.shards().get(i).name()));
    }
    var _ = files.finish(parts, set.toJson(), options);
  }

  @Override
  public void takeBack() {
    files.close();
  }
}
