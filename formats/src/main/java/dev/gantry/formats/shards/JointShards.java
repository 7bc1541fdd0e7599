// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.files.JointFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/// Writes one set of raw tensor shards by several processes, on a file system that all of them see.
///
/// One process begins and finishes the set. Every other process writes a part by [#part], finishes it, and
/// tells the first process its name. The set consists of the parts that are given to [#finish], and exists
/// when that returns, not before. Other parts are removed, such as those of a process that was killed.
///
/// For one thread. Other writers of its folder are refused meanwhile.
public final class JointShards implements AutoCloseable {
  /// The generator has no fixed seed, since two sets of one folder must have different names.
  private static final SecureRandom RANDOM = new SecureRandom();

  private static final Pattern NAME = Pattern.compile("[0-9A-Za-z-]{1,200}");

  private final Path folder;
  private final GantrySession session;
  private final ShardFolder output;

  private JointShards(GantrySession session, Path folder, ShardFolder output) {
    this.session = session;
    this.folder = folder;
    this.output = output;
  }

  /// Makes the folder where it is missing, and removes what an unfinished writer has left there.
  ///
  /// @param session must stay open until this is closed
  /// @param mayReplace whether finishing this set may replace, in one step, a set that is there
  /// @throws MisuseException as [ShardWriter#create] throws it; because of an existing set only if it may
  ///     not be replaced
  /// @throws TransferException if the folder cannot be made, read or cleared
  public static JointShards begin(Session session, Path folder, boolean mayReplace) {
    GantrySession own = GantrySession.of(session);
    return new JointShards(own, folder, ShardFolder.prepare(own, folder, mayReplace));
  }

  /// Begins a part, in any process.
  ///
  /// @param folder the folder of a set that was begun and is not finished yet
  /// @param name 1 to 200 letters, digits and hyphens, that no other part of the set has
  /// @throws TransferException if the set is finished or was given up, or has a part of this name
  public static ShardWriter part(
      Session session, Path folder, String name, List<Field> fields, ShardOptions options) {
    GantrySession own = GantrySession.of(session);
    Path work = JointFiles.unfinished(folder);
    Path index = part(work, name);
    if (Files.exists(index) || !Files.isDirectory(work)) {
      throw new TransferException(
          "open",
          index + ", since there is such a part, or the set has ended",
          new Failure.Cancelled());
    }
    NewShardSet plan =
        new NewShardSet(
            index,
            number -> work.resolve(String.format(Locale.ROOT, "part-%s-%05d.bin", name, number)),
            fields,
            options);
    return new ShardWriter(
        own,
        plan,
        new ShardWriter.Output() {
          @Override
          public void finish(ShardSet set, WriteOptions write) {
            Memory text = new Memory.OnHost(MemorySegment.ofArray(set.toJson()));
            var _ = own.write(List.of(new NewFile(index, List.of(text))), write);
          }

          @Override
          public void takeBack() {
            // The part is removed with the set's unfinished work.
          }
        });
  }

  /// The path of a part's index.
  private static Path part(Path work, String name) {
    if (!NAME.matcher(name).matches()) {
      throw new MisuseException(
          "a part's name has 1 to 200 letters, digits and hyphens (was '" + name + "')");
    }
    return work.resolve("part-" + name + ".json");
  }

  /// Makes one set of finished parts. Their files are moved, not read.
  ///
  /// @param fields the fields of every part
  /// @param parts the parts' names, in the order of their samples
  /// @param options give the notes and the size of a block, which must be that of all parts; nothing else
  ///     of them is used
  /// @return the set as readers will find it
  /// @throws MisuseException if a part has other fields or blocks, or there are too many shards
  /// @throws dev.gantry.core.MalformedFileException if a part is missing or incomplete
  /// @throws TransferException if a file cannot be moved; the set does not exist then, unless only the
  ///     folder's last `fsync` failed
  public ShardSet finish(List<Field> fields, List<String> parts, ShardOptions options) {
    Path work = JointFiles.unfinished(folder);
    NewShardSet plan = NewShardSet.of(folder, fields, options);
    List<Shard> shards = new ArrayList<>();
    List<String> files = new ArrayList<>();
    int unique = RANDOM.nextInt();
    for (String name : parts) {
      ShardSet part = ShardSet.open(session, Location.of(part(work, name)));
      requireSame(plan, part);
      for (Shard shard : part.shards()) {
        if (shards.size() == ShardSet.MAX_SHARDS) {
          throw new MisuseException(folder + " has no room for so many shards");
        }
        files.add(shard.name());
        shards.add(shard.withFile(ShardFolder.shard(folder, shards.size(), unique)));
      }
    }
    ShardSet set = plan.set(shards);
    output.finish(set, files, WriteOptions.defaults());
    return set;
  }

  private static void requireSame(NewShardSet plan, ShardSet part) {
    if (!part.fields().equals(plan.fields())) {
      throw new MisuseException(
          part.file() + " has the fields " + part.fields() + ", not " + plan.fields());
    }
    if (part.blockBytes() != plan.options().blockBytes) {
      throw new MisuseException(
          part.file()
              + " has a checksum each "
              + part.blockBytes()
              + " bytes, not "
              + plan.options().blockBytes);
    }
  }

  /// Removes all parts and the folders that were made for them, unless the set is finished. Idempotent.
  ///
  /// @throws TransferException if something could not be removed
  @Override
  public void close() {
    output.takeBack();
  }
}
