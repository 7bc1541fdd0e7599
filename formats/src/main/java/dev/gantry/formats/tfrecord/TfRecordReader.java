// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.source.ByteSource;
import dev.gantry.formats.internal.source.ByteWindow;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Reads the records of one file in order, and compares both checksums of each record.
///
/// ```java
/// try (TfRecordReader reader = TfRecordReader.open(file, TfRecordOptions.defaults())) {
///   while (reader.next()) {
///     use(reader.record());
///   }
/// }
/// ```
///
/// A file's faults are [MalformedFileException]s of these kinds, each at the offset of the
/// record's header: `length-crc` and `data-crc` if a checksum is wrong; `truncated` if the file
/// ends before the record does; `record-too-large` if the record is longer than the options
/// allow; and `invalid-compression`. The reader compares a record's length with the bytes left in
/// the file before it allocates memory for the record.
///
/// In a compressed file, offsets count decompressed bytes. The reader takes at most one chunk or
/// twice the longest record of memory, whichever is more. Not thread-safe, except [#readRecords]
/// and [#readRecord].
public final class TfRecordReader implements AutoCloseable {
  /// The bytes of a record's header, which lie before its data.
  public static final int HEADER_BYTES = Framing.HEADER_BYTES;

  /// The bytes of a record's header and footer.
  public static final int FRAMING_BYTES = Framing.BYTES;

  static final String LENGTH_CRC = "length-crc";
  static final String DATA_CRC = "data-crc";
  static final String TRUNCATED = "truncated";
  static final String TOO_LARGE = "record-too-large";
  static final String INVALID_COMPRESSION = "invalid-compression";

  private static final String NO_RECORD =
      ": next() was not called, or returned false, or read only a record's header";

  private final SourceFile file;
  private final Compression compression;
  private final ByteWindow window;
  private final SkippedFaults skipped;
  private final int mostRecordBytes;
  private final Framing framing = new Framing();

  /// Whether there is a current record.
  private boolean standing;

  /// Bytes of the current record and its framing.
  private int current;

  /// The current record's data; null where only its header was read.
  private @Nullable MemorySegment record;

  private long number;
  private long records;
  private long bytes;
  private boolean ended;
  private boolean closed;

  private TfRecordReader(
      SourceFile file, TfRecordOptions options, Position from, SkippedFaults skipped) {
    this.file = file;
    this.skipped = skipped;
    mostRecordBytes = options.mostRecordBytes();
    number = from.number();
    compression = options.compression().orElseGet(() -> Compression.of(file));
    // An empty file has no records, even if the options say that it is compressed: TensorFlow
    // reads it so.
    if (compression == Compression.NONE || file.size() == 0) {
      if (from.offset() > file.size()) {
        throw fault(from.offset(), TRUNCATED, "the file ends at " + file.size());
      }
      window =
          new ByteWindow(
              new ByteSource.Plain(file, from.offset()),
              from.offset(),
              ByteSource.chunkBytes(file, options.chunkBytes()));
    } else {
      window = new ByteWindow(compression.inflate(file), 0, options.chunkBytes());
      passBy(from.offset());
    }
  }

  /// Opens a local file with the process's shared session, as [#open(Session, Path,
  /// TfRecordOptions)] does.
  public static TfRecordReader open(Path file, TfRecordOptions options) {
    return open(GantrySession.shared(), file, options);
  }

  /// Opens a local file; [#next] goes to its first record.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened or read
  /// @throws MalformedFileException of kind `not-a-regular-file`
  public static TfRecordReader open(Session session, Path file, TfRecordOptions options) {
    return open(session, Location.of(file), options);
  }

  /// Opens a file of any store, as [#open(Session, Path, TfRecordOptions)] does.
  public static TfRecordReader open(Session session, Location file, TfRecordOptions options) {
    return open(session, file, options, Position.START, SkippedFaults.of(options));
  }

  /// Opens a file at a position between two records. The reader begins to read an uncompressed
  /// file there; it decompresses a compressed file from its start again.
  ///
  /// @param from a [#position] of an earlier reader
  public static TfRecordReader open(
      Session session, Path file, TfRecordOptions options, Position from) {
    return open(session, Location.of(file), options, from, SkippedFaults.of(options));
  }

  /// Opens one of several files that are read together, in any store, as [#open(Session, Path,
  /// TfRecordOptions, Position)] does.
  ///
  /// @param skipped applies the policy to the faults of all these files
  public static TfRecordReader open(
      Session session,
      Location file,
      TfRecordOptions options,
      Position from,
      SkippedFaults skipped) {
    return Cleanup.orUndo(
        () -> GantrySession.of(session).openFile(file),
        source -> new TfRecordReader(source, options, from, skipped),
        SourceFile::close);
  }

  /// Returns whether a file, whatever its name, begins with a record's header whose checksum is
  /// right, uncompressed or in a gzip or zlib stream. A gzip or zlib stream of no bytes is also a
  /// TFRecord file. Nothing after the header is read. For an empty file the answer is false,
  /// though a reader treats it as a file without records.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened or read
  /// @throws MalformedFileException of kind `not-a-regular-file`
  public static boolean isTfRecord(Session session, Location file) {
    try (SourceFile source = GantrySession.of(session).openFile(file)) {
      return Compression.isTfRecord(source);
    }
  }

  /// Goes to the next record.
  ///
  /// @return whether there is a next record
  /// @throws MalformedFileException if the policy does not skip a fault; the reader is at its end
  ///     then
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public boolean next() {
    return next(Integer.MAX_VALUE);
  }

  /// Goes to the next record as [#next()] does. In an uncompressed file, if the record is longer
  /// than `mostBytes`, only its header is read and checked; [#readRecords] reads such records, on
  /// any thread.
  public boolean next(int mostBytes) {
    if (closed) {
      throw new MisuseException("the reader of " + file.file() + " is closed");
    }
    leave();
    while (!ended) {
      try {
        return advance(compression == Compression.NONE ? mostBytes : Integer.MAX_VALUE);
      } catch (MalformedFileException fault) {
        // If the policy throws the fault, the reader is at its end.
        ended = true;
        ended = !recovers(fault);
      }
    }
    return false;
  }

  private void leave() {
    if (standing) {
      standing = false;
      record = null;
      window.pass(current);
      number++;
    }
  }

  private boolean advance(int mostBytes) {
    int have = require(Framing.HEADER_BYTES);
    if (have == 0) {
      ended = true;
      return false;
    }
    if (have < Framing.HEADER_BYTES) {
      throw fault(TRUNCATED, "only " + have + " bytes of its header");
    }
    long length = checkedLength();
    current = (int) length + Framing.BYTES;
    if (length <= mostBytes) {
      readData((int) length);
    }
    standing = true;
    records++;
    bytes += length;
    return true;
  }

  /// Returns the first bytes of the window, at most as many as identify a file's format.
  private ByteBuffer start() {
    int here = Math.min(require(0), OtherFormats.START_BYTES);
    return window.slice(0, here).asByteBuffer();
  }

  private long checkedLength() {
    ByteBuffer memory = window.bytes();
    if (!framing.isHeader(memory, window.start())) {
      throw fault(
          LENGTH_CRC,
          "the checksum of its length is wrong"
              + (window.position() == 0 ? OtherFormats.instead(start()) : ""));
    }
    memory.clear();
    long length = memory.getLong(window.start());
    long left = window.mostLeft() - Framing.BYTES;
    if (left < 0 || Long.compareUnsigned(length, left) > 0) {
      throw fault(
          TRUNCATED,
          "its length is " + Long.toUnsignedString(length) + ", more than the file can hold");
    }
    if (length > mostRecordBytes) {
      throw fault(TOO_LARGE, "its length is " + length + ", more than " + mostRecordBytes);
    }
    return length;
  }

  private void readData(int length) {
    int have = require(current);
    if (have < current) {
      throw fault(TRUNCATED, "only " + have + " bytes of " + current);
    }
    if (!framing.isData(window.bytes(), window.start(), length)) {
      throw fault(DATA_CRC, Framing.wrongData(length));
    }
    record = window.slice(Framing.HEADER_BYTES, length);
  }

  /// Reads whole records that lie end to end, with their framing, and compares both checksums of
  /// each; it skips no fault. Thread-safe until [#close], even while another thread calls
  /// [#next()].
  ///
  /// @param from the position of the first record
  /// @param target native memory of exactly the size of the records with their framing
  /// @throws MisuseException if the file is compressed
  /// @throws MalformedFileException of kind `length-crc` or `data-crc`
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public void readRecords(Position from, MemorySegment target) {
    requirePlain();
    boolean _ = file.read(target, from.offset(), target.byteSize(), false);
    new Framing()
        .requireContiguousRecords(
            target.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN), faultsFrom(from));
  }

  /// Reads one record with its framing into several pieces of memory, one after the other, as
  /// [#readRecords] does.
  ///
  /// @param pieces native memory, with the size of the record and its framing together. The first
  ///     piece must hold the whole header, and the last piece the whole checksum of the data
  /// @throws MisuseException if the first or the last piece is too short
  public void readRecord(Position from, List<MemorySegment> pieces) {
    requirePlain();
    if (pieces.isEmpty()
        || pieces.getFirst().byteSize() < Framing.HEADER_BYTES
        || pieces.getLast().byteSize() < Framing.CRC_BYTES) {
      throw new MisuseException(
          "a record's first piece needs "
              + Framing.HEADER_BYTES
              + " bytes, its last "
              + Framing.CRC_BYTES);
    }
    long at = from.offset();
    for (MemorySegment piece : pieces) {
      boolean _ = file.read(piece, at, piece.byteSize(), false);
      at += piece.byteSize();
    }
    new Framing().requireScatteredRecord(pieces, faultsFrom(from));
  }

  private void requirePlain() {
    if (compression != Compression.NONE) {
      throw new MisuseException(file.file() + " is compressed; read it record by record");
    }
  }

  private Framing.Fault faultsFrom(Position from) {
    return (at, record, kind, detail) ->
        fault(from.offset() + at, from.number() + record, kind, detail);
  }

  /// Returns whether the reader can continue after a fault; throws the fault if the policy does
  /// not skip it.
  private boolean recovers(MalformedFileException fault) {
    if (fault.kind().equals(TOO_LARGE)) {
      // A record past the caller's own limit is not damaged.
      throw fault;
    }
    skipped.pass(fault);
    number++;
    if (!fault.kind().equals(DATA_CRC)) {
      return false;
    }
    window.consume(current);
    return true;
  }

  private int require(int count) {
    try {
      return window.require(count);
    } catch (EOFException _) {
      throw fault(TRUNCATED, "the compressed file ends too soon");
    } catch (IOException e) {
      throw fault(INVALID_COMPRESSION, String.valueOf(e.getMessage()));
    }
  }

  /// Drops the bytes before `offset` from the window.
  private void passBy(long offset) {
    Cleanup.orUndo(
        () -> {
          while (window.position() < offset) {
            int step =
                (int) Math.min(TfRecordOptions.LEAST_CHUNK_BYTES, offset - window.position());
            int have = Math.min(step, require(step));
            if (have == 0) {
              throw fault(offset, TRUNCATED, "the file ends at " + window.position());
            }
            window.consume(have);
          }
        },
        window::close);
  }

  private MalformedFileException fault(String kind, String detail) {
    return fault(window.position(), kind, detail);
  }

  private MalformedFileException fault(long offset, String kind, String detail) {
    return fault(offset, number, kind, detail);
  }

  private MalformedFileException fault(long offset, long record, String kind, String detail) {
    return new MalformedFileException(
        file.file(), offset, kind, "record " + record + ": " + detail);
  }

  /// @throws MisuseException if the file is not local: see [#location]
  public Path file() {
    return file.file().path();
  }

  /// The location of the file.
  public Location location() {
    return file.file();
  }

  /// The compression of the file, as the options gave it or as it was detected.
  public Compression compression() {
    return compression;
  }

  /// Returns the current record's data: native memory of any alignment, valid until the next call of [#next] or
  /// [#close].
  ///
  /// @throws MisuseException if there is no current record, or [#hasData] is false
  public MemorySegment record() {
    if (record == null) {
      throw new MisuseException(file.file() + NO_RECORD);
    }
    return record;
  }

  /// Whether the current record's data was read and checked, not only its header.
  public boolean hasData() {
    return record != null;
  }

  /// How long the current record's data is, in bytes.
  ///
  /// @throws MisuseException if there is none
  public int length() {
    if (!standing) {
      throw new MisuseException(file.file() + NO_RECORD);
    }
    return current - Framing.BYTES;
  }

  /// The current record's number in its file, from 0.
  public long number() {
    return number;
  }

  /// The offset of the current record's header, in bytes from the start of the (decompressed)
  /// file. The record's data begins [#HEADER_BYTES] later.
  public long offset() {
    return window.position();
  }

  /// Returns the position between the current record and the next one.
  public Position position() {
    return standing
        ? new Position(window.position() + current, number + 1)
        : new Position(window.position(), number);
  }

  /// Returns the counts of what this reader has read. The faults are those of all files that are
  /// read together.
  public Statistics statistics() {
    return new Statistics(records, bytes, skipped.byKind());
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      standing = false;
      record = null;
      try (file) {
        window.close();
      }
    }
  }

  /// A position between two records of a file.
  ///
  /// @param offset the offset of the next record's header, in bytes from the start of the
  ///     (decompressed) file
  /// @param number the next record's number, from 0
  public record Position(long offset, long number) {
    /// The position before the first record.
    public static final Position START = new Position(0, 0);

    public Position {
      if (offset < 0 || number < 0) {
        throw new MisuseException(
            "number and offset of a position must be 0 or more (were "
                + number
                + " and "
                + offset
                + ")");
      }
    }
  }

  /// The counts of the records that have been read so far.
  ///
  /// @param records how many records were read without a fault
  /// @param bytes the size of these records, without their framing
  /// @param skipped how many faults were skipped, by kind
  public record Statistics(long records, long bytes, Map<String, Long> skipped) {
    public Statistics {
      skipped = Map.copyOf(skipped);
    }
  }
}
