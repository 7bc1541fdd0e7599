// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.source.ByteSource;
import dev.gantry.formats.internal.source.ByteWindow;
import dev.gantry.formats.internal.source.InflatedSource;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Optional;

/// Reads the members of a tar archive in order. The archive may lie in any store, may be
/// compressed with gzip, and may have the format v7, ustar, pax or GNU. The reader compares the
/// checksum of every header, and its memory is bounded. In a compressed file, offsets count
/// decompressed bytes. Not thread-safe.
///
/// Commons Compress reads tar, too, but it does not compare the checksums of extended headers, keeps names
/// of any length, and does not tell where in the file a fault is.
public final class TarReader implements AutoCloseable {
  /// The longest extended header or name, in bytes.
  static final int MAX_EXTENDED_BYTES = 1 << 20;

  /// The longest name of a member, in characters: the longest path of a file on Linux.
  static final int MAX_NAME_LENGTH = 4096;

  private static final int CHUNK_BYTES = 256 << 10;
  private static final int GZIP_FIRST = 0x1f;
  private static final int GZIP_SECOND = 0x8b;

  private static final String TRUNCATED = "truncated";
  private static final String CHECKSUM = "header-checksum";
  private static final String INVALID_HEADER = "invalid-header";

  private final SourceFile file;

  /// The decompressed bytes of a compressed archive; empty for an uncompressed one.
  private final Optional<CopiedSource> decompressed;

  private final ByteWindow window;

  /// How many bytes of the current member are still ahead, its padding included.
  private long left;

  /// How many bytes of the current member's data are still ahead.
  private long data;

  /// How many bytes at the window's start [#read] has returned; the next call drops them.
  private int taken;

  private boolean ended;

  private TarReader(SourceFile file) {
    this.file = file;
    this.decompressed =
        isGzip(file) ? Optional.of(new CopiedSource(InflatedSource.gzip(file))) : Optional.empty();
    ByteSource source =
        decompressed.<ByteSource>map(each -> each).orElseGet(() -> new ByteSource.Plain(file, 0));
    this.window = new ByteWindow(source, 0, ByteSource.chunkBytes(file, CHUNK_BYTES));
  }

  private static boolean isGzip(SourceFile file) {
    try (ByteWindow start =
        new ByteWindow(new ByteSource.Plain(file, 0), 0, ByteWindow.LEAST_CHUNK_BYTES)) {
      return start.require(2) >= 2
          && Byte.toUnsignedInt(start.bytes().get(start.start())) == GZIP_FIRST
          && Byte.toUnsignedInt(start.bytes().get(start.start() + 1)) == GZIP_SECOND;
    } catch (IOException e) {
      throw new IllegalStateException("nothing is decompressed", e);
    }
  }

  /// Opens an archive; [#next] goes to its first member.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened or read
  /// @throws MalformedFileException of kind `not-a-regular-file`
  public static TarReader open(GantrySession session, Location file) {
    return Cleanup.orUndo(() -> session.openFile(file), TarReader::new, SourceFile::close);
  }

  /// Copies the decompressed bytes of a compressed archive to a file while they are read. The
  /// copy is complete if this is called before the first member and all members are read.
  ///
  /// @param path an empty file
  void copyTo(Path path) {
    decompressed.orElseThrow().copyTo(path);
  }

  /// Whether a file, whatever its name, begins with the header of a tar archive, plain or compressed.
  public static boolean isTar(GantrySession session, Location file) {
    try (TarReader reader = open(session, file)) {
      return reader.window.require(TarHeader.BYTES) >= TarHeader.BYTES
          && reader.block().hasItsChecksum();
    } catch (IOException _) {
      return false;
    }
  }

  /// Whether the archive is compressed, so that its members cannot be reached by their offsets.
  public boolean isCompressed() {
    return decompressed.isPresent();
  }

  /// The file with the version that is open.
  SourceFile file() {
    return file;
  }

  /// Goes to the next member.
  ///
  /// @return the member; empty at the end of the archive
  /// @throws MalformedFileException if a header is damaged, the archive ends too soon, or the member is a
  ///     sparse file, which Gantry does not read
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public Optional<TarMember> next() {
    if (ended) {
      return Optional.empty();
    }
    leave();
    PaxRecords pax = PaxRecords.NONE;
    String longName = "";
    boolean extended = false;
    while (true) {
      long at = window.position();
      TarHeader header = header(at);
      if (header.isZero()) {
        if (extended) {
          throw fault(at, INVALID_HEADER, "an extended header is followed by no member");
        }
        end();
        return Optional.empty();
      }
      long size =
          header
              .size()
              .orElseThrow(() -> fault(at, INVALID_HEADER, "the member's size is not a number"));
      switch (header.type()) {
        case 'x', 'X' -> pax = records(at, size);
        case 'g' -> {
          // A global header is ignored if it has only comments and times.
          if (!records(at, size).isEmpty()) {
            throw fault(
                at, INVALID_HEADER, "a global header gives one name or size to all members");
          }
        }
        case 'L' -> longName = TarHeader.text(extended(at, size));
        case 'K' -> {
          byte[] _ = extended(at, size);
        }
        default -> {
          String name = pax.path().orElse(longName.isEmpty() ? header.name() : longName);
          if (name.length() > MAX_NAME_LENGTH) {
            throw fault(
                at,
                "name-too-long",
                "a name has " + name.length() + " characters, more than " + MAX_NAME_LENGTH);
          }
          if (pax.isSparse() || header.type() == 'S') {
            throw fault(at, "sparse-member", "'" + name + "' is a sparse file");
          }
          return Optional.of(enter(at, header.type(), name, pax.size().orElse(size)));
        }
      }
      extended |= header.type() != 'g';
    }
  }

  private TarMember enter(long header, char type, String name, long size) {
    boolean directory = type == '5' || (type == '\0' && name.endsWith("/"));
    boolean file = (type == '0' || type == '\0' || type == '7') && !directory;
    // Links, devices, directories and pipes have no data, whatever their size says.
    data = directory || (type >= '1' && type <= '6') ? 0 : size;
    left = padded(header, data);
    return new TarMember(name, header, window.position(), data, file);
  }

  /// Returns the size of some data with their padding.
  private long padded(long header, long bytes) {
    if (bytes > window.mostLeft()) {
      throw fault(
          header,
          TRUNCATED,
          "a member of " + bytes + " bytes, where " + window.mostLeft() + " are left");
    }
    return Math.ceilDiv(bytes, TarHeader.BYTES) * (long) TarHeader.BYTES;
  }

  private TarHeader header(long at) {
    int have = require(TarHeader.BYTES);
    if (have == 0 && at == 0) {
      throw fault(at, "empty-file", "the file is empty");
    }
    if (have < TarHeader.BYTES) {
      throw fault(
          at,
          TRUNCATED,
          have == 0
              ? "the blocks of zeros are missing that end an archive"
              : "only " + have + " bytes of a header" + instead(at, have));
    }
    TarHeader header = block();
    if (!header.isZero() && !header.hasItsChecksum()) {
      throw fault(at, CHECKSUM, "a header's checksum is not that of its bytes" + instead(at, have));
    }
    window.consume(TarHeader.BYTES);
    return header;
  }

  /// @param have how many bytes of a header are in the window
  private String instead(long at, int have) {
    return at == 0
        ? OtherFormats.instead(
            window.slice(0, Math.min(have, OtherFormats.START_BYTES)).asByteBuffer())
        : "";
  }

  private TarHeader block() {
    byte[] block = new byte[TarHeader.BYTES];
    MemorySegment.copy(
        window.slice(0, block.length), ValueLayout.JAVA_BYTE, 0, block, 0, block.length);
    return new TarHeader(block);
  }

  private PaxRecords records(long header, long size) {
    try {
      return PaxRecords.parse(extended(header, size));
    } catch (IllegalArgumentException e) {
      throw fault(header, INVALID_HEADER, "an extended header: " + e.getMessage());
    }
  }

  /// Reads the data of a header that extends the next member's header.
  private byte[] extended(long header, long size) {
    if (size > MAX_EXTENDED_BYTES) {
      throw fault(
          header,
          "header-too-large",
          "an extended header has " + size + " bytes, more than " + MAX_EXTENDED_BYTES);
    }
    int bytes = (int) padded(header, size);
    if (require(bytes) < bytes) {
      throw fault(header, TRUNCATED, "an extended header ends too soon");
    }
    byte[] data = window.slice(0, (int) size).toArray(ValueLayout.JAVA_BYTE);
    window.consume(bytes);
    return data;
  }

  /// Returns the first bytes of the current member's data, before any of it was read. Valid until the next
  /// call.
  ///
  /// @param count how many bytes to return; fewer are returned if the member has fewer
  MemorySegment peek(int count) {
    int wanted = (int) Math.min(count, data);
    if (require(wanted) < wanted) {
      throw cut();
    }
    return window.slice(0, wanted);
  }

  /// Returns the next bytes of the current member's data, valid until the next call; no bytes at
  /// the end of the data.
  public MemorySegment read() {
    passTaken();
    if (data > 0) {
      taken = (int) Math.min(data, require(1));
      if (taken == 0) {
        throw cut();
      }
    }
    return window.slice(0, taken);
  }

  private void passTaken() {
    window.consume(taken);
    left -= taken;
    data -= taken;
    taken = 0;
  }

  /// Skips the bytes of the current member that were not read.
  private void leave() {
    passTaken();
    // In a remote file, reading a few bytes on takes less time than another request.
    boolean skips = file.isLocal() || left > ByteSource.REMOTE_CHUNK_BYTES;
    if (!isCompressed() && skips && left <= window.mostLeft()) {
      window.pass(left);
      left = 0;
    }
    while (left > 0) {
      int step = (int) Math.min(left, require(1));
      if (step == 0) {
        throw cut();
      }
      window.consume(step);
      left -= step;
    }
    data = 0;
  }

  /// Reads a compressed file to its end, so that its own checksum is compared.
  private void end() {
    ended = true;
    while (isCompressed()) {
      int have = require(1);
      if (have == 0) {
        return;
      }
      window.consume(have);
    }
  }

  private int require(int count) {
    try {
      return window.require(count);
    } catch (EOFException _) {
      throw fault(window.position(), TRUNCATED, "the compressed file ends too soon");
    } catch (IOException e) {
      throw fault(window.position(), "invalid-compression", String.valueOf(e.getMessage()));
    }
  }

  private MalformedFileException cut() {
    return fault(window.position(), TRUNCATED, "the archive ends within a member");
  }

  /// @param offset in the archive
  MalformedFileException fault(long offset, String kind, String detail) {
    return new MalformedFileException(file.file(), offset, kind, detail);
  }

  @Override
  public void close() {
    try (file) {
      window.close();
    }
  }
}
