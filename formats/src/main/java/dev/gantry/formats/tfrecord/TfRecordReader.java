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

/// Reads the records of one file in order, and checks both checksums of each.
///
/// ```java
/// try (TfRecordReader reader = TfRecordReader.open(file, TfRecordOptions.defaults())) {
///   while (reader.next()) {
///     use(reader.record());
///   }
/// }
/// ```
///
/// A file's faults are [MalformedFileException]s of these kinds, each at the offset of the record's
/// header: `length-crc` and `data-crc` where a checksum is wrong; `truncated` where the file ends
/// before the record does; `record-too-large` where the record is longer than the options take; and
/// `invalid-compression`. Lengths are held against what the file can still hold before anything is
/// allocated for them.
///
/// Offsets in a compressed file are those of what it decompresses to. Memory is bounded by the
/// chunk, or twice the longest record. Not thread-safe but for [#readRecords] and [#readRecord].
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

  private final SourceFile file;
  private final Compression compression;
  private final ByteWindow window;
  private final SkippedFaults skipped;
  private final int mostRecordBytes;
  private final Framing framing = new Framing();

  /// Whether the reader stands at a record.
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
    // An empty file has no records, also where it is said to be compressed: TensorFlow reads it so.
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

  /// Opens a local file by the process's shared session; else as [#open(Session, Path, TfRecordOptions)].
  public static TfRecordReader open(Path file, TfRecordOptions options) {
    return open(GantrySession.shared(), file, options);
  }

  /// Opens a file before its first record.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened or read
  /// @throws MalformedFileException of kind `not-a-regular-file`
  public static TfRecordReader open(Session session, Path file, TfRecordOptions options) {
    return open(session, Location.of(file), options);
  }

  /// Opens a file of any store; else as [#open(Session, Path, TfRecordOptions)].
  public static TfRecordReader open(Session session, Location file, TfRecordOptions options) {
    return open(session, file, options, Position.START, SkippedFaults.of(options));
  }

  /// Opens a file between two records. A file that is not compressed is read from there; a compressed one is decompressed
  /// again from its start.
  ///
  /// @param from a [#position] of an earlier reader
  public static TfRecordReader open(
      Session session, Path file, TfRecordOptions options, Position from) {
    return open(session, Location.of(file), options, from, SkippedFaults.of(options));
  }

  /// Opens one of several files that are read together, of any store; else as
  /// [#open(Session, Path, TfRecordOptions, Position)].
  ///
  /// @param skipped applies the policy to all of them
  public static TfRecordReader open(
      Session session,
      Location file,
      TfRecordOptions options,
      Position from,
      SkippedFaults skipped) {
    SourceFile source = GantrySession.of(session).openFile(file);
    return Cleanup.orUndo(() -> new TfRecordReader(source, options, from, skipped), source::close);
  }

  /// Returns whether a file, whatever its name, begins with a record's header whose checksum is right, plain or in a gzip
  /// or zlib stream, or is such a stream without a byte in it. Nothing after the header is read. For an empty file the
  /// answer is no, though readers take it for a file without records.
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
  /// @return whether there is one
  /// @throws MalformedFileException if the policy does not pass over a fault; the reader is at its
  ///     end then
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public boolean next() {
    return next(Integer.MAX_VALUE);
  }

  /// Goes to the next record as [#next()] does. In a file that is not compressed, only the header of a record longer than
  /// `mostBytes` is read and checked; [#readRecords] reads such records, on any thread.
  public boolean next(int mostBytes) {
    if (closed) {
      throw new MisuseException("the reader of " + file.file() + " is closed");
    }
    leave();
    while (!ended) {
      try {
        return advance(compression == Compression.NONE ? mostBytes : Integer.MAX_VALUE);
      } catch (MalformedFileException fault) {
        // The policy throws this one.
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

  /// Returns those of the bytes that tell a file's format which the window has.
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
  /// each; no fault is passed over. Thread-safe until [#close], also while another thread is at
  /// [#next()].
  ///
  /// @param from of the first record
  /// @param target native memory of as many bytes as the records and their framing have
  /// @throws MisuseException if the file is compressed
  /// @throws MalformedFileException of kind `length-crc` or `data-crc`
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public void readRecords(Position from, MemorySegment target) {
    requirePlain();
    boolean _ = file.read(target, from.offset(), target.byteSize(), false);
    new Framing()
        .requireRecords(target.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN), faultsFrom(from));
  }

  /// Reads one record with its framing into pieces of memory, one after the other; otherwise as [#readRecords].
  ///
  /// @param pieces native memory, together of as many bytes as the record and its framing have. The first piece takes
  ///     the header, and the last the checksum behind the data
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
    new Framing().requireRecord(pieces, faultsFrom(from));
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

  /// Whether reading goes on after a fault.
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

  /// @throws MisuseException if another store holds the file: see [#location]
  public Path file() {
    return file.file().path();
  }

  /// The file that is read.
  public Location location() {
    return file.file();
  }

  /// The compression of the file, as it was given or found.
  public Compression compression() {
    return compression;
  }

  /// Returns the current record's data: native memory of any alignment, valid until the next call of [#next] or
  /// [#close].
  ///
  /// @throws MisuseException if there is none, or [#hasData] is not
  public MemorySegment record() {
    if (record == null) {
      throw new MisuseException("no record of " + file.file() + " was asked for, or none is left");
    }
    return record;
  }

  /// Whether the current record was read and checked, not only its header.
  public boolean hasData() {
    return record != null;
  }

  /// How long the current record's data is, in bytes.
  ///
  /// @throws MisuseException if there is none
  public int length() {
    if (!standing) {
      throw new MisuseException("no record of " + file.file() + " was asked for, or none is left");
    }
    return current - Framing.BYTES;
  }

  /// The current record's number in its file, from 0.
  public long number() {
    return number;
  }

  /// The offset of the current record's header, in bytes from the start of the file, or of what it decompresses to.
  /// Its data is [#HEADER_BYTES] further.
  public long offset() {
    return window.position();
  }

  /// Returns the position between the current record and the next one.
  public Position position() {
    return standing
        ? new Position(window.position() + current, number + 1)
        : new Position(window.position(), number);
  }

  /// Returns what this reader has read. Faults are those of all files that are read together.
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

  /// A place between two records of a file.
  ///
  /// @param offset of the next record's header, in bytes from the start of the file, or of what it
  ///     decompresses to
  /// @param number of the next record, from 0
  public record Position(long offset, long number) {
    /// Before the first record.
    public static final Position START = new Position(0, 0);

    public Position {
      if (offset < 0 || number < 0) {
        throw new MisuseException("record " + number + " at offset " + offset);
      }
    }
  }

  /// The counts of the records that have been read so far.
  ///
  /// @param records that were good
  /// @param bytes of these, without their framing
  /// @param skipped how many faults were passed over, by kind
  public record Statistics(long records, long bytes, Map<String, Long> skipped) {
    public Statistics {
      skipped = Map.copyOf(skipped);
    }
  }
}
