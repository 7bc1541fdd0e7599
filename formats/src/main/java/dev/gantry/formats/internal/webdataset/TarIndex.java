// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.commit.TemporaryFile;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.index.Column;
import dev.gantry.formats.internal.index.FileStamp;
import dev.gantry.formats.internal.index.MappedColumn;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Function;

/// The offsets and lengths of the members of an archive's samples. Members are numbered from 0,
/// and the members of one sample have consecutive numbers. Thread-safe, but [#close] must come
/// after the last read.
public final class TarIndex implements AutoCloseable {
  /// The most extensions that the members of one archive may have.
  static final int MAX_FIELDS = SampleReader.MAX_FIELDS;

  /// The result of [#value] for a member that has no value.
  static final long NO_VALUE = Long.MIN_VALUE;

  /// The longest text that is parsed as an integer, in bytes, with the spaces around it.
  private static final int MAX_INTEGER_BYTES = 32;

  /// The longest header of a NumPy array that is compared with the headers of other arrays, in
  /// bytes.
  private static final int MAX_NPY_HEADER_BYTES = 64 << 10;

  /// How many of a NumPy array's first bytes are needed to compute the length of its header.
  private static final int NPY_PREFIX_BYTES = 12;

  /// The bytes between two reports of progress.
  private static final long REPORT_BYTES = 64L << 20;

  private final Location file;
  private final Location data;
  private final Object identity;
  private final FileStamp stamp;
  private final List<String> fields;
  private final Function<Numbers, MemorySegment> numbers;
  private final Runnable closing;

  /// @param data the file from which members are read, with its identity; it is the archive or
  ///     its decompressed copy
  /// @param numbers returns the memory of a column; it is called at each use, since the memory
  ///     may have been freed
  TarIndex(
      Location file,
      Location data,
      Object identity,
      FileStamp stamp,
      List<String> fields,
      Function<Numbers, MemorySegment> numbers,
      Runnable closing) {
    this.file = file;
    this.data = data;
    this.identity = identity;
    this.stamp = stamp;
    this.fields = List.copyOf(fields);
    this.numbers = numbers;
    this.closing = closing;
  }

  /// The columns of an index. `ENDS` has a number for each sample, every other column one for
  /// each member.
  enum Numbers {
    /// The number just past the sample's last member.
    ENDS("sample/end", DType.U64),

    /// The offset of the member's data in the file.
    OFFSETS("member/offset", DType.U64),

    /// The length of the member's data in bytes.
    LENGTHS("member/length", DType.U64),

    /// The number that [TarIndex#value] returns.
    VALUES("member/value", DType.I64),

    /// The number of the member's extension in [TarIndex#fields].
    FIELDS("member/field", DType.U32);

    /// The name of the column's tensor in a stored index.
    final String tensor;

    final DType dtype;

    Numbers(String tensor, DType dtype) {
      this.tensor = tensor;
      this.dtype = dtype;
    }
  }

  /// Columns that grow.
  private static final class Columns implements AutoCloseable {
    private final Map<Numbers, Column> all = new EnumMap<>(Numbers.class);

    Columns() {
      for (Numbers each : Numbers.values()) {
        all.put(each, new Column());
      }
    }

    Column of(Numbers numbers) {
      return Objects.requireNonNull(all.get(numbers));
    }

    @Override
    public void close() {
      Cleanup.forEach(all.values(), Column::close);
    }
  }

  /// Reads the headers of an archive's members.
  ///
  /// @throws MisuseException if the archive is compressed, which allows no random access
  /// @throws dev.gantry.core.MalformedFileException as [SampleReader#next] does, and of kind
  ///     `too-many-fields`
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public static TarIndex scan(GantrySession session, Location file, ProgressListener progress) {
    try (SampleReader reader = SampleReader.open(session, file)) {
      if (reader.tar().isCompressed()) {
        throw new MisuseException(
            file
                + " is compressed: its members cannot be reached by offset, so it has no"
                + " index; decompress it");
      }
      return scanned(file, reader, Optional.empty(), progress);
    }
  }

  /// Reads the headers of an archive's members, as [#scan] does. A compressed archive is decompressed to a
  /// temporary file meanwhile, where its members are read later; [#close] deletes the file.
  public static TarIndex scanAny(GantrySession session, Location file) {
    ProgressListener none = (_, _) -> {};
    try (SampleReader reader = SampleReader.open(session, file)) {
      if (!reader.tar().isCompressed()) {
        return scanned(file, reader, Optional.empty(), none);
      }
      TemporaryFile copy = TemporaryFile.create(".tar");
      return Cleanup.orUndo(
          () -> {
            reader.tar().copyTo(copy.path());
            return scanned(file, reader, Optional.of(copy), none);
          },
          copy::close);
    }
  }

  /// @param copy the file to which the archive is decompressed while its members are read; empty
  ///     to read members from the archive itself
  private static TarIndex scanned(
      Location file, SampleReader reader, Optional<TemporaryFile> copy, ProgressListener progress) {
    Columns columns = new Columns();
    return Cleanup.orUndo(
        () -> {
          List<String> fields = scan(reader, columns, progress);
          SourceFile source = reader.tar().file();
          return new TarIndex(
              file,
              copy.map(made -> Location.of(made.path())).orElse(file),
              copy.<Object>map(made -> SourceFile.Identity.look(made.path()))
                  .orElse(source.identity()),
              stamp(source),
              fields,
              column -> columns.of(column).bytes(),
              () -> {
                columns.close();
                copy.ifPresent(TemporaryFile::close);
              });
        },
        columns::close);
  }

  private static FileStamp stamp(SourceFile source) {
    return source.identity() instanceof SourceFile.Identity local
        ? FileStamp.of(local)
        : FileStamp.of(source);
  }

  private static List<String> scan(
      SampleReader reader, Columns columns, ProgressListener progress) {
    Map<String, Integer> numbers = new HashMap<>();
    List<String> fields = new ArrayList<>();
    long sample = 0;
    long members = 0;
    long report = REPORT_BYTES;
    for (var next = reader.next(); next.isPresent(); next = reader.next()) {
      SampleReader.Value value = next.get();
      TarMember member = value.member();
      if (value.sample() > sample) {
        columns.of(Numbers.ENDS).addLong(members);
        sample = value.sample();
      }
      Integer number = numbers.get(value.field());
      if (number == null) {
        if (fields.size() == MAX_FIELDS) {
          throw reader
              .tar()
              .fault(
                  member.header(),
                  "too-many-fields",
                  "the members have more than " + MAX_FIELDS + " extensions");
        }
        number = fields.size();
        numbers.put(value.field(), number);
        fields.add(value.field());
      }
      columns.of(Numbers.OFFSETS).addLong(member.offset());
      columns.of(Numbers.LENGTHS).addLong(member.length());
      columns.of(Numbers.VALUES).addLong(value(reader.tar(), value));
      columns.of(Numbers.FIELDS).addInt(number);
      members++;
      if (member.offset() >= report) {
        progress.onProgress(member.offset(), reader.tar().file().size());
        report = member.offset() + REPORT_BYTES;
      }
    }
    if (members > 0) {
      columns.of(Numbers.ENDS).addLong(members);
    }
    return fields;
  }

  private static long value(TarReader tar, SampleReader.Value value) {
    if (MemberKinds.isNpy(value.field())) {
      return npyHeader(tar);
    }
    return value.member().length() > MAX_INTEGER_BYTES
        ? NO_VALUE
        : integer(tar.peek(MAX_INTEGER_BYTES)).orElse(NO_VALUE);
  }

  /// Returns the integer that a text spells in decimal digits; empty if it spells none.
  private static OptionalLong integer(MemorySegment text) {
    String digits =
        new String(text.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.ISO_8859_1).strip();
    try {
      return OptionalLong.of(Long.parseLong(digits));
    } catch (NumberFormatException _) {
      return OptionalLong.empty();
    }
  }

  /// Returns a number that is the same for equal headers of NumPy arrays; it consists of the
  /// header's length and CRC32C.
  private static long npyHeader(TarReader tar) {
    MemorySegment prefix = tar.peek(NPY_PREFIX_BYTES);
    if (prefix.byteSize() < NPY_PREFIX_BYTES) {
      return NO_VALUE;
    }
    // The first version of the format stores the length in two bytes, later versions in four.
    boolean first = prefix.get(ValueLayout.JAVA_BYTE, 6) == 1;
    long word = Integer.toUnsignedLong(prefix.get(Column.INT, 8));
    long length = first ? (word & 0xffff) + NPY_PREFIX_BYTES - 2 : word + NPY_PREFIX_BYTES;
    if (length > MAX_NPY_HEADER_BYTES) {
      return NO_VALUE;
    }
    MemorySegment header = tar.peek((int) length);
    return length << Integer.SIZE | Integer.toUnsignedLong(Crc32c.of(header));
  }

  /// The archive.
  public Location file() {
    return file;
  }

  /// The size of the archive in bytes.
  long fileBytes() {
    return stamp.size();
  }

  /// Returns the file from which members are read, which is the archive or its decompressed copy.
  Location data() {
    return data;
  }

  /// The identity of [#data] when it was read.
  Object identity() {
    return identity;
  }

  /// The extensions of all members, in the order in which they first come.
  public List<String> fields() {
    return fields;
  }

  /// How many samples the archive has.
  public long samples() {
    return numbers.apply(Numbers.ENDS).byteSize() / Long.BYTES;
  }

  /// The bytes of all members' data.
  public long bytes() {
    MemorySegment lengths = numbers.apply(Numbers.LENGTHS);
    long bytes = 0;
    for (long i = 0; i < lengths.byteSize() / Long.BYTES; i++) {
      bytes += MappedColumn.signedLong(lengths, i);
    }
    return bytes;
  }

  /// The lengths of the members of each extension, in the order of [#fields].
  List<LongSummaryStatistics> fieldLengths() {
    List<LongSummaryStatistics> found =
        fields.stream().map(_ -> new LongSummaryStatistics()).toList();
    MemorySegment lengths = numbers.apply(Numbers.LENGTHS);
    MemorySegment extensions = numbers.apply(Numbers.FIELDS);
    for (long i = 0; i < lengths.byteSize() / Long.BYTES; i++) {
      found
          .get((int) MappedColumn.unsignedInt(extensions, i))
          .accept(MappedColumn.signedLong(lengths, i));
    }
    return found;
  }

  /// Finds the first member of a sample that is one of the wanted fields.
  ///
  /// @param wanted whether each of [#fields] is wanted
  /// @return the number of the first such member; -1 if the sample has none
  long member(long sample, boolean[] wanted) {
    MemorySegment ends = numbers.apply(Numbers.ENDS);
    MemorySegment extensions = numbers.apply(Numbers.FIELDS);
    long end = MappedColumn.signedLong(ends, sample);
    for (long member = sample == 0 ? 0 : MappedColumn.signedLong(ends, sample - 1);
        member < end;
        member++) {
      if (wanted[(int) MappedColumn.unsignedInt(extensions, member)]) {
        return member;
      }
    }
    return -1;
  }

  /// The offset of a member's data in the file.
  long offset(long member) {
    return MappedColumn.signedLong(numbers.apply(Numbers.OFFSETS), member);
  }

  /// The length of a member's data in bytes.
  long length(long member) {
    return MappedColumn.signedLong(numbers.apply(Numbers.LENGTHS), member);
  }

  /// Returns the integer that a short member spells in decimal digits, or a number that
  /// identifies the header of a NumPy array; [#NO_VALUE] if the member is neither.
  long value(long member) {
    return MappedColumn.signedLong(numbers.apply(Numbers.VALUES), member);
  }

  /// The stamp of the archive when its members were listed.
  FileStamp stamp() {
    return stamp;
  }

  MemorySegment numbers(Numbers column) {
    return numbers.apply(column);
  }

  @Override
  public void close() {
    closing.run();
  }
}
