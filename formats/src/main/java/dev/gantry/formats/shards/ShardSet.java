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
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.SampleCatalogue;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Samples in raw tensor shards: what `shards.json` says, checked in full. It holds no file open.
/// Immutable.
public final class ShardSet {
  /// The name of the file that says what the others hold.
  public static final String FILE_NAME = "shards.json";

  /// What a `shards.json` says that it is, as its `format`.
  public static final String FORMAT = "gantry-shards";

  /// The longest `shards.json`, in bytes; a safetensors header is bounded likewise.
  public static final long MAX_INDEX_BYTES = 100_000_000;

  /// The most files: as many as their names have digits for.
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

  /// The parts fit each other, as [ShardIndexParser] checks.
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

  /// Reads `shards.json`, and compares what it says with the sizes of the files; the bytes in them
  /// are for [#verify].
  ///
  /// @param session by whose store `shards.json` is read
  /// @param folderOrFile the folder, or its `shards.json`: locally by whatever name; the name of a remote one ends in
  ///     `.json`, and any other is a folder's. Remote shards are looked at when they are first read
  /// @throws MalformedFileException if it breaks a rule of the format, each with its own kind; of
  ///     kind `no-shards` where the folder has no `shards.json`, and so no dataset that was written
  ///     to its end
  /// @throws TransferException if a file cannot be opened or read
  public static ShardSet open(Session session, Location folderOrFile) {
    ShardSet set = read(session, index(folderOrFile), true);
    for (Shard shard : set.shards) {
      if (shard.location() instanceof Location.Local(Path file, _)) {
        set.files.expect(shard.location(), SourceFile.Identity.look(file));
      }
    }
    return set;
  }

  /// As [#open(Session, Location)], of a local folder or file, with the process's shared session.
  public static ShardSet open(Path folderOrFile) {
    return open(Session.shared(), Location.of(folderOrFile));
  }

  private static Location index(Location folderOrFile) {
    return switch (folderOrFile) {
      case Location.Local(Path path, _) when Files.isDirectory(path) -> {
        Path file = path.resolve(FILE_NAME);
        if (!Files.exists(file)) {
          throw new MalformedFileException(path, 0, "no-shards", "the folder has no " + FILE_NAME);
        }
        yield Location.of(file);
      }
      case Location.Local _ -> folderOrFile;
      case Location.Remote remote ->
          remote.fileName().endsWith(".json") ? remote : Folder.child(remote, FILE_NAME);
    };
  }

  /// @param withShards whether the shards are looked at, too
  static ShardSet read(Session session, Location file, boolean withShards) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return new ShardIndexParser(bytes, withShards).parse();
    }
  }

  /// What [#read] reads, in UTF-8.
  ///
  /// @throws MisuseException if it gets too long
  byte[] toJson() {
    return ShardIndexWriter.bytes(this);
  }

  /// The `shards.json`.
  ///
  /// @throws MisuseException if another store holds it: see [#location]
  public Path file() {
    return location.path();
  }

  /// The location of `shards.json`.
  public Location location() {
    return location;
  }

  /// In all shards.
  public long samples() {
    return samples;
  }

  /// How many bytes have one checksum; the last block of a file may have fewer.
  public long blockBytes() {
    return blockBytes;
  }

  /// What each sample has, in the order of the shards' bytes; 1 or more.
  public List<Field> fields() {
    return fields;
  }

  /// The writer's notes, in their order.
  public SequencedMap<String, String> metadata() {
    return metadata;
  }

  /// The files, in the order of their samples.
  public List<Shard> shards() {
    return shards;
  }

  /// The size of all shards together.
  public long totalBytes() {
    return totalBytes;
  }

  /// The shards as they were when this was opened.
  KnownFiles files() {
    return files;
  }

  /// The samples with all their fields, for batches. A shard that is not the file any more that it
  /// was when this was opened is an error, whenever it is opened again.
  public SampleCatalogue catalogue() {
    return catalogue(fields.stream().map(Field::name).toList());
  }

  /// The samples with some of their fields, for batches; closing it does nothing.
  ///
  /// @param names of the fields, in the order that they are to have
  /// @throws MisuseException if there is no field of a name, or a name comes twice
  public SampleCatalogue catalogue(List<String> names) {
    return new ShardCatalogue(this, names);
  }

  /// Reads all shards and compares their checksums, with as many threads as suit the machine.
  ///
  /// @throws MalformedFileException of kind `checksum-mismatch` where a block is damaged, with the
  ///     shard and the block's first byte in it; where several are, of one of them
  /// @throws TransferException if a shard cannot be read, or has become too short
  public void verify() {
    verify(GantrySession.shared(), 0, (_, _) -> {}, new Cancellation());
  }

  /// As [#verify()], with a session of the caller's.
  public void verify(Session session) {
    verify(session, 0, (_, _) -> {}, new Cancellation());
  }

  /// As [#verify()]. Each thread reads some 64 MiB in turn, through a buffer of 8 MiB.
  ///
  /// @param threads how many, or 0 for as many as suit the machine
  /// @param progress hears how many bytes are done
  /// @param cancellation ends it early
  /// @throws TransferException also if it is cancelled
  public void verify(
      Session session, int threads, ProgressListener progress, Cancellation cancellation) {
    new ShardVerification(GantrySession.of(session), this, cancellation).run(threads, progress);
  }
}
