// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.IndexFile;
import dev.gantry.formats.internal.index.IndexNotes;
import dev.gantry.formats.internal.index.MappedColumn;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.internal.webdataset.TarIndex.Numbers;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Stream;

/// The index of an archive in a file beside it, `NAME.gantry-index`, so that the archive's headers need not be
/// read again.
public final class StoredIndex {
  static final String FORMAT = "gantry-webdataset-index";
  static final long VERSION = 1;

  /// The start of a note that names an extension by its number.
  private static final String FIELD = "field/";

  private static final String FIELD_COUNT = "fields";

  private StoredIndex() {}

  /// The result of [#open].
  public sealed interface Found {
    /// An index that matches the archive as it is now; the caller closes it.
    record Usable(TarIndex index) implements Found {}

    /// There is no index, or it is outdated or has an unknown version.
    ///
    /// @param reason in words, with the name of the index
    record Unusable(String reason) implements Found {}
  }

  /// Reads an archive's headers and writes its index in place of an older one. A failure writes nothing.
  ///
  /// @return the index; the caller closes it
  /// @throws MalformedFileException as [TarIndex#scan] does, and of kind `changed-meanwhile`
  /// @throws dev.gantry.core.MisuseException if the archive is compressed, or its store takes no files
  /// @throws dev.gantry.core.TransferException if a file cannot be read or written
  public static TarIndex build(GantrySession session, Location file, ProgressListener progress) {
    IndexFile stored = IndexFile.of(file, session);
    stored.requireWritable();
    return Cleanup.orUndo(
        () -> TarIndex.scan(session, file, progress),
        index -> {
          stored.requireUnchanged(index.stamp());
          write(stored, index);
          return index;
        },
        TarIndex::close);
  }

  static void write(IndexFile stored, TarIndex index) {
    List<NewTensor> tensors = tensors(index);
    SortedMap<String, String> notes = new TreeMap<>();
    notes.put(FIELD_COUNT, Integer.toString(index.fields().size()));
    for (int i = 0; i < index.fields().size(); i++) {
      notes.put(FIELD + i, index.fields().get(i));
    }
    stored.write(
        tensors,
        IndexNotes.complete(notes, FORMAT, VERSION, index.stamp(), IndexFile.checksums(tensors)));
  }

  private static List<NewTensor> tensors(TarIndex index) {
    return Stream.of(Numbers.values()).map(each -> tensor(each, index.numbers(each))).toList();
  }

  private static NewTensor tensor(Numbers numbers, MemorySegment bytes) {
    TensorShape shape = TensorShape.of(bytes.byteSize() / numbers.dtype.alignmentBytes());
    return new NewTensor(numbers.tensor, numbers.dtype, shape, new Memory.OnHost(bytes));
  }

  /// Opens the index of an archive, if there is one that matches the archive as it is now.
  ///
  /// @throws MalformedFileException if the index is damaged or contradicts the archive; the error
  ///     names the index, which must be built again
  /// @throws dev.gantry.core.TransferException if the archive is missing, or the index cannot be read
  public static Found open(GantrySession session, Location file) {
    IndexFile stored = IndexFile.of(file, session);
    Optional<IndexFile.State> state = stored.look();
    Optional<SafetensorsHeader> header = state.isEmpty() ? Optional.empty() : stored.header();
    if (header.isEmpty()) {
      return new Found.Unusable(stored.index() + " does not exist");
    }
    IndexNotes.Parser notes = new IndexNotes.Parser(stored.index(), header.get().metadata());
    long version = notes.version(FORMAT);
    if (version != VERSION) {
      return new Found.Unusable(
          stored.index() + " is of version " + version + ", where only " + VERSION + " is known");
    }
    notes.requireSum();
    String change = state.get().stamp().changeSince(notes.stamp(), state.get().written());
    if (!change.isEmpty()) {
      return new Found.Unusable(stored.index() + " is stale: " + change);
    }
    List<String> fields = fields(notes, header.get().metadata());
    checkTensors(header.get());
    IndexFile.Mapped mapped = stored.map(header.get(), notes.checksums());
    return Cleanup.orUndo(
        () -> {
          Map<String, MappedColumn> columns = mapped.columns();
          Function<Numbers, MemorySegment> numbers =
              each -> Objects.requireNonNull(columns.get(each.tensor)).bytes();
          checkNumbers(stored, notes.stamp().size(), fields.size(), numbers);
          return new Found.Usable(
              new TarIndex(
                  file,
                  file,
                  state.get().identity(),
                  notes.stamp(),
                  fields,
                  numbers,
                  mapped::close));
        },
        mapped::close);
  }

  private static List<String> fields(IndexNotes.Parser notes, Map<String, String> all) {
    int count = (int) notes.number(FIELD_COUNT, 0, TarIndex.MAX_FIELDS);
    List<String> fields = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      String field = all.get(FIELD + i);
      if (field == null) {
        throw notes.malformed("invalid-note", "'" + FIELD + i + "' is missing");
      }
      fields.add(field);
    }
    return fields;
  }

  private static void checkTensors(SafetensorsHeader header) {
    long members = count(header, Numbers.FIELDS);
    for (Numbers each : Numbers.values()) {
      long count = each == Numbers.ENDS ? count(header, each) : members;
      StoredTensor tensor = header.tensors().get(each.tensor);
      if (tensor == null
          || tensor.dtype() != each.dtype
          || !tensor.shape().equals(TensorShape.of(count))) {
        throw new MalformedFileException(
            header.file(),
            0,
            "invalid-tensor",
            "the index has no tensor '%s' of %s %s".formatted(each.tensor, count, each.dtype));
      }
    }
  }

  private static long count(SafetensorsHeader header, Numbers numbers) {
    StoredTensor tensor = header.tensors().get(numbers.tensor);
    return tensor == null ? 0 : tensor.extent().length() / numbers.dtype.alignmentBytes();
  }

  /// Checks that each sample has at least one member, that each member belongs to a sample, and
  /// that each member lies in the archive.
  private static void checkNumbers(
      IndexFile stored, long fileBytes, int fields, Function<Numbers, MemorySegment> numbers) {
    MemorySegment ends = numbers.apply(Numbers.ENDS);
    MemorySegment offsets = numbers.apply(Numbers.OFFSETS);
    MemorySegment lengths = numbers.apply(Numbers.LENGTHS);
    long members = offsets.byteSize() / Long.BYTES;
    long before = 0;
    boolean right = true;
    for (long i = 0; i < ends.byteSize() / Long.BYTES; i++) {
      long end = MappedColumn.signedLong(ends, i);
      right &= end > before && end <= members;
      before = end;
    }
    right &= before == members;
    long free = 0;
    for (long i = 0; i < members && right; i++) {
      long offset = MappedColumn.signedLong(offsets, i);
      long length = MappedColumn.signedLong(lengths, i);
      right =
          offset >= free
              && length >= 0
              && length <= fileBytes
              && offset <= fileBytes - length
              && MappedColumn.unsignedInt(numbers.apply(Numbers.FIELDS), i) < fields;
      free = right ? offset + length : 0;
    }
    if (!right) {
      throw new MalformedFileException(
          stored.index(),
          0,
          "offset-out-of-range",
          "samples or members lie where the archive has none");
    }
  }
}
