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

/// One set of raw tensor shards that several processes write, on a file system that all of them see.
///
/// One process begins and finishes the set. Each other writes a part by [#part], and tells the first
/// one the part's name when it has finished it. The set has the parts that [#finish] is given, and is
/// there when that returns, and not before. Parts that it is not given go: a part that was written
/// twice, or by a process that was killed, leaves nothing.
///
/// For one thread. While it is at work other writers of its folder are refused.
public final class JointShards implements AutoCloseable {
  /// It has no seed, since two sets of one folder must not have the same names.
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

  /// Makes the folder where it is missing, and removes from it what a writer left that did not
  /// finish.
  ///
  /// @param session which must stay open for as long as this
  /// @param mayReplace whether a set that is there goes when this one is finished, and at once
  /// @throws MisuseException as [ShardWriter#create] has it; of a set that is there only where it may
  ///     not be replaced
  /// @throws TransferException if the folder cannot be made, read or cleared
  public static JointShards begin(Session session, Path folder, boolean mayReplace) {
    GantrySession own = GantrySession.of(session);
    return new JointShards(own, folder, ShardFolder.prepare(own, folder, mayReplace));
  }

  /// Begins a part, in any process.
  ///
  /// @param folder of a set that was begun and is not finished yet
  /// @param name 1 to 200 letters, digits and hyphens, that no other part of the set has
  /// @throws TransferException if the set is finished or was given up, or there is such a part
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
            // It goes with the set's unfinished work.
          }
        });
  }

  /// The index of a part.
  private static Path part(Path work, String name) {
    if (!NAME.matcher(name).matches()) {
      throw new MisuseException(
          "a part's name has 1 to 200 letters, digits and hyphens (was '" + name + "')");
    }
    return work.resolve("part-" + name + ".json");
  }

  /// Makes one set of finished parts. Their files are moved, not read.
  ///
  /// @param fields of all parts
  /// @param parts by name, in the order of their samples
  /// @param options of which only the notes and the size of a block count, which is that of all parts
  /// @return what readers will find
  /// @throws MisuseException if a part has other fields or blocks, or there are too many shards
  /// @throws dev.gantry.core.MalformedFileException if a part is missing or not whole
  /// @throws TransferException if a file cannot be moved; the set is not there
  ///     then, unless the failure is of the folder's synchronisation after the index has its name
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
    if (part.blockBytes() != plan.options().blockBytes()) {
      throw new MisuseException(
          part.file()
              + " has a checksum each "
              + part.blockBytes()
              + " bytes, not "
              + plan.options().blockBytes());
    }
  }

  /// After [#finish] nothing; else removes all parts, and the folders that were made for this. Idempotent.
  ///
  /// @throws TransferException if something could not be removed
  @Override
  public void close() {
    output.takeBack();
  }
}
