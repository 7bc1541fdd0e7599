// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.KnownFiles;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.SampleCatalogue;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// A dataset of raw tensor shards: the checked contents of its `shards.json`. It holds no file open.
/// Immutable.
public final class ShardSet {
  /// The name of the index, which describes the shards.
  public static final String FILE_NAME = "shards.json";

  /// The value of `format` in a `shards.json`.
  public static final String FORMAT = "gantry-shards";

  /// The longest `shards.json`, in bytes; a safetensors header has the same bound.
  public static final long MAX_INDEX_BYTES = 100_000_000;

  /// The most shards: as many as their names have digits for.
  public static final int MAX_SHARDS = 100_000;

  /// The most fields of a set; an index that names more is refused.
  public static final int MAX_FIELDS = 1000;

  /// The most fields, notes, shards, offsets and members of unknown names together.
  public static final int MAX_ENTRIES = JsonReader.MAX_ENTRIES;

  /// The most dimensions of a field.
  public static final int MAX_RANK = JsonMembers.MAX_RANK;

  /// Fields begin at multiples of this many bytes. So each can be read past the page cache, and its elements are
  /// aligned wherever the file is mapped.
  public static final int PAGE_BYTES = PlanLimits.BLOCK_BYTES;

  /// The largest block that has one checksum.
  public static final long MAX_BLOCK_BYTES = 1L << 30;

  static final long VERSION = 1;

  private final Location location;
  private final long blockBytes;
  private final List<Field> fields;
  private final SequencedMap<String, String> metadata;
  private final List<Shard> shards;
  private final long samples;
  private final long totalBytes;
  private final KnownFiles files =
      new KnownFiles("its samples are not those of " + FILE_NAME + "; open the dataset again");

  /// Takes parts that fit each other, as [ShardIndexParser] has checked.
  ShardSet(
      Location location,
      long blockBytes,
      List<Field> fields,
      Map<String, String> metadata,
      List<Shard> shards) {
    this.location = location;
    this.blockBytes = blockBytes;
    this.fields = List.copyOf(fields);
    this.metadata = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(metadata));
    this.shards = List.copyOf(shards);
    samples = shards.stream().mapToLong(Shard::samples).sum();
    totalBytes = shards.stream().mapToLong(Shard::bytes).sum();
  }

  /// Reads `shards.json`, and compares it with the sizes of the files; [#verify] compares their bytes.
  ///
  /// @param session reads `shards.json` by its stores
  /// @param folderOrFile the folder, or its `shards.json`. A local index may have any name; a remote name
  ///     that ends in `.json` is an index, and any other a folder. Remote shards are checked when they are
  ///     first read
  /// @throws MalformedFileException if `shards.json` breaks a rule of the format, with a kind for each
  ///     rule; of kind `no-shards` if the folder has no `shards.json`, and so no finished dataset
  /// @throws TransferException if a file cannot be opened or read
  public static ShardSet open(Session session, Location folderOrFile) {
    ShardSet set = read(session, index(session, folderOrFile), true);
    for (Shard shard : set.shards) {
      if (shard.location() instanceof Location.Local(Path file, _)) {
        set.files.expect(shard.location(), SourceFile.Identity.look(file));
      }
    }
    return set;
  }

  /// Opens a local folder or file with the process's shared session, as [#open(Session, Location)] does.
  public static ShardSet open(Path folderOrFile) {
    return open(Session.shared(), Location.of(folderOrFile));
  }

  private static Location index(Session session, Location folderOrFile) {
    return switch (MisuseException.requireGiven("folderOrFile", folderOrFile)) {
      case Location.Local local ->
          Folder.at(GantrySession.of(session), local).map(ShardSet::index).orElse(local);
      case Location.Remote remote ->
          remote.fileName().endsWith(".json") ? remote : Folder.child(remote, FILE_NAME);
    };
  }

  private static Location index(Folder folder) {
    return folder
        .file(FILE_NAME)
        .orElseThrow(() ->
            new MalformedFileException(
                folder.location(),
                0,
                "no-shards",
                "the folder has no " + FILE_NAME + OtherFormats.instead(folder)));
  }

  /// @param withShards whether to check the shards' files, too
  static ShardSet read(Session session, Location file, boolean withShards) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      if (ShardFolder.isShard(file.fileName())) {
        throw new MalformedFileException(
            file,
            0,
            "another-format",
            "not " + FILE_NAME + ": a shard is read by its folder's name");
      }
      OtherFormats.refuse(bytes, FILE_NAME);
      return new ShardIndexParser(bytes, withShards).parse();
    }
  }

  /// Formats this as a `shards.json` in UTF-8, which [#read] reads.
  ///
  /// @throws MisuseException if the text gets too long
  byte[] toJson() {
    return ShardIndexWriter.bytes(this);
  }

  /// The path of `shards.json`.
  ///
  /// @throws MisuseException if the file is not local: see [#location]
  public Path file() {
    return location.path();
  }

  /// The location of `shards.json`.
  public Location location() {
    return location;
  }

  /// How many samples all shards have.
  public long samples() {
    return samples;
  }

  /// How many bytes have one checksum; the last block of a file may have fewer.
  public long blockBytes() {
    return blockBytes;
  }

  /// The fields of each sample, in the order of the shards' bytes; 1 or more.
  public List<Field> fields() {
    return fields;
  }

  /// The writer's notes, in their order.
  public SequencedMap<String, String> metadata() {
    return metadata;
  }

  /// The shards, in the order of their samples.
  public List<Shard> shards() {
    return shards;
  }

  /// The size of all shards together, in bytes.
  public long totalBytes() {
    return totalBytes;
  }

  /// The identities of the shards' files when this was opened.
  KnownFiles files() {
    return files;
  }

  /// Returns the samples with all their fields, for batches. If a shard's file has changed since this was
  /// opened, opening the shard again is an error.
  public SampleCatalogue catalogue() {
    return catalogue(fields.stream().map(Field::name).toList());
  }

  /// Returns the samples with some of their fields, for batches; closing it does nothing.
  ///
  /// @param names the fields' names, in the order that batches are to have
  /// @throws MisuseException if no field has a name, or a name comes twice
  public SampleCatalogue catalogue(List<String> names) {
    return catalogue(List.of(this), names);
  }

  /// Returns the samples of several sets, one after the other, for batches; closing it does nothing.
  ///
  /// @param sets one or more, with equal fields
  /// @throws MisuseException also if the sets' fields differ
  public static SampleCatalogue catalogue(List<ShardSet> sets, List<String> names) {
    MisuseException.requireGiven("sets", sets);
    MisuseException.requireRange("number of sets", sets.size(), 1, Integer.MAX_VALUE);
    return new ShardCatalogue(sets, names);
  }

  /// Reads all shards and compares their checksums, with as many threads as suit the machine.
  ///
  /// @throws MalformedFileException of kind `checksum-mismatch` if a block is damaged, with the shard and
  ///     the offset of the block; if several are, for one of them
  /// @throws TransferException if a shard cannot be read, or has become too short
  public void verify() {
    verify(GantrySession.shared(), 0, (_, _) -> {}, new Cancellation());
  }

  /// Compares all checksums as [#verify()] does, with the caller's session.
  public void verify(Session session) {
    verify(session, 0, (_, _) -> {}, new Cancellation());
  }

  /// Compares all checksums as [#verify()] does. Each thread takes about 64 MiB at a time, and reads
  /// through a buffer of 8 MiB.
  ///
  /// @param threads how many threads, or 0 for as many as suit the machine
  /// @param progress is told how many bytes were compared
  /// @param cancellation ends the verification early
  /// @throws TransferException if a shard cannot be read or has become too short, or if the caller cancels
  public void verify(
      Session session, int threads, ProgressListener progress, Cancellation cancellation) {
    new ShardVerification(GantrySession.of(session), this, cancellation).run(threads, progress);
  }
}
