// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.archive;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/// Reads the directory of a ZIP archive. Its members are stored or deflated, and share no bytes.
///
/// Commons Compress could read the directory, too, but it parses the times and notes of each
/// member, which takes longer than all other steps of opening a file of tensors.
public final class ZipDirectory {
  /// The most bytes of a directory. This is more than any real directory has, and bounds the heap
  /// that a hostile one can fill.
  private static final long MAX_DIRECTORY_BYTES = 32 << 20;

  /// The size of a local header without the member's name.
  private static final int LOCAL_HEADER_BYTES = 30;

  /// The size of an entry of the directory without its name, extra fields and comment.
  private static final int ENTRY_BYTES = 46;

  /// The size of the record at the archive's end without its comment.
  private static final int END_BYTES = 22;

  private static final int MAX_COMMENT_BYTES = 0xFFFF;

  /// The sizes of the two ZIP64 records, which only archives of 4 GiB and more need.
  private static final int LOCATOR_BYTES = 20;

  private static final int ZIP64_END_BYTES = 56;

  private final FileBytes bytes;
  private final Extent archive;
  private final ByteBuffer localHeader;

  private ZipDirectory(FileBytes bytes, Extent archive) {
    this.bytes = bytes;
    this.archive = archive;
    // Local headers lie far apart. A direct buffer is filled without reading ahead, which only
    // remote files are slow at.
    this.localHeader =
        (archive.file() instanceof Location.Local
                ? ByteBuffer.allocateDirect(LOCAL_HEADER_BYTES)
                : ByteBuffer.allocate(LOCAL_HEADER_BYTES))
            .order(ByteOrder.LITTLE_ENDIAN);
  }

  /// Whether the bytes begin as a ZIP archive does, with or without members.
  public static boolean begins(ByteBuffer start) {
    if (start.remaining() < Integer.BYTES) {
      return false;
    }
    return switch (start.duplicate().order(ByteOrder.LITTLE_ENDIAN).getInt(start.position())) {
      case 0x04034b50, 0x06054b50 -> true;
      default -> false;
    };
  }

  /// The name in the first local header, if it is among the first bytes; else an empty name.
  public static String firstName(ByteBuffer start) {
    ByteBuffer header = start.slice().order(ByteOrder.LITTLE_ENDIAN);
    if (!begins(start) || header.remaining() < LOCAL_HEADER_BYTES) {
      return "";
    }
    int length = Short.toUnsignedInt(header.getShort(26));
    return header.remaining() < LOCAL_HEADER_BYTES + length
        ? ""
        : StandardCharsets.ISO_8859_1.decode(header.slice(LOCAL_HEADER_BYTES, length)).toString();
  }

  /// Returns the members of the archive that fills a file, as [#read(FileBytes, Extent)] does.
  public static List<ZipMember> read(FileBytes bytes) {
    return read(bytes, new Extent(bytes.file(), 0, bytes.length()));
  }

  /// Returns the members in the order of the directory, without folders.
  ///
  /// @param archive the extent of the whole archive in the file
  /// @throws MalformedFileException if the directory is damaged, members share bytes, or one is encrypted
  ///     or compressed in another way than by deflate
  public static List<ZipMember> read(FileBytes bytes, Extent archive) {
    ZipDirectory directory = new ZipDirectory(bytes, archive);
    List<ZipMember> members = directory.members(directory.entries());
    directory.requireApart(members);
    return members;
  }

  /// Finds the directory by the record at the archive's end, or by that of ZIP64 where there is one.
  private ByteBuffer entries() {
    long end = endOffset();
    ByteBuffer record = read(end, END_BYTES);
    long size = Integer.toUnsignedLong(record.getInt(12));
    long start = Integer.toUnsignedLong(record.getInt(16));
    ByteBuffer locator = read(Math.max(0, end - LOCATOR_BYTES), LOCATOR_BYTES);
    if (locator.getInt(0) == 0x07064b50) {
      end = locator.getLong(8);
      record = read(end, ZIP64_END_BYTES);
      if (record.getInt(0) != 0x06064b50) {
        throw damaged("it has no record of ZIP64 at offset " + end);
      }
      size = record.getLong(40);
      start = record.getLong(48);
    }
    if (size < 0 || size > MAX_DIRECTORY_BYTES || start < 0 || start > end - size) {
      throw damaged("the directory has " + size + " bytes from offset " + start + " on");
    }
    return read(start, (int) size);
  }

  private long endOffset() {
    // Few archives have a comment, so the last bytes are searched for a record without a comment
    // first.
    for (int most : new int[] {END_BYTES, END_BYTES + MAX_COMMENT_BYTES}) {
      int count = (int) Math.min(most, archive.length());
      ByteBuffer tail = read(archive.length() - count, count);
      for (int at = count - END_BYTES; at >= 0; at--) {
        if (tail.getInt(at) == 0x06054b50) {
          return archive.length() - count + at;
        }
      }
    }
    throw damaged("it has no record at its end");
  }

  private List<ZipMember> members(ByteBuffer entries) {
    List<ZipMember> members = new ArrayList<>();
    while (entries.hasRemaining()) {
      ByteBuffer entry = entries.slice().order(ByteOrder.LITTLE_ENDIAN);
      if (entry.limit() < ENTRY_BYTES || entry.getInt(0) != 0x02014b50) {
        throw damaged("no entry begins after " + members.size() + " members");
      }
      int extra = ENTRY_BYTES + Short.toUnsignedInt(entry.getShort(28));
      int comment = extra + Short.toUnsignedInt(entry.getShort(30));
      int end = comment + Short.toUnsignedInt(entry.getShort(32));
      if (end > entry.limit()) {
        throw damaged("the entry after " + members.size() + " members is cut");
      }
      String name =
          new String(
              entry.array(),
              entry.arrayOffset() + ENTRY_BYTES,
              extra - ENTRY_BYTES,
              StandardCharsets.UTF_8);
      if (!name.endsWith("/")) {
        members.add(member(name, entry.position(extra).limit(comment)));
      }
      entries.position(entries.position() + end);
    }
    return members;
  }

  /// @param entry an entry of the directory, positioned at its extra fields and limited to them
  private ZipMember member(String name, ByteBuffer entry) {
    int flags = entry.getShort(8);
    int method = Short.toUnsignedInt(entry.getShort(10));
    ByteBuffer large = zip64Numbers(entry);
    long size = number(entry.getInt(24), large);
    long compressed = number(entry.getInt(20), large);
    long offset = dataOffset(name, number(entry.getInt(42), large));
    if (compressed < 0 || size < 0 || compressed > archive.length() - offset) {
      throw malformed(
          Math.min(offset, archive.length()),
          "member-past-end",
          name,
          "ends after the end of the file");
    }
    if ((flags & 1) != 0) {
      throw malformed(offset, "encrypted", name, "is encrypted");
    }
    boolean deflated =
        switch (method) {
          case 0 -> false;
          case 8 -> true;
          default ->
              throw malformed(
                  offset,
                  "unknown-compression",
                  name,
                  "is compressed by method "
                      + method
                      + "; Gantry reads stored and deflated members");
        };
    ZipMember member =
        new ZipMember(
            name,
            new Extent(archive.file(), archive.offset() + offset, compressed),
            size,
            entry.getInt(16),
            deflated);
    member.requirePlausible();
    return member;
  }

  /// Returns the contents of an entry's ZIP64 extra field, which has the numbers that do not fit
  /// the entry's own fields; an empty buffer if there is no such field.
  private static ByteBuffer zip64Numbers(ByteBuffer extra) {
    while (extra.remaining() >= Integer.BYTES) {
      short kind = extra.getShort();
      int length = Math.min(Short.toUnsignedInt(extra.getShort()), extra.remaining());
      if (kind == 1) {
        return extra.slice(extra.position(), length).order(ByteOrder.LITTLE_ENDIAN);
      }
      extra.position(extra.position() + length);
    }
    return extra;
  }

  private static long number(int field, ByteBuffer large) {
    return field == -1 && large.remaining() >= Long.BYTES
        ? large.getLong()
        : Integer.toUnsignedLong(field);
  }

  /// Returns the offset of a member's bytes, which only the member's local header states.
  private long dataOffset(String name, long header) {
    if (header < 0 || header > archive.length() - LOCAL_HEADER_BYTES) {
      throw malformed(0, "member-past-end", name, "begins after the end of the file");
    }
    bytes.readFully(localHeader.clear(), archive.offset() + header);
    if (localHeader.getInt(0) != 0x04034b50) {
      throw malformed(header, "invalid-archive", name, "has no header there");
    }
    return header
        + LOCAL_HEADER_BYTES
        + Short.toUnsignedInt(localHeader.getShort(26))
        + Short.toUnsignedInt(localHeader.getShort(28));
  }

  /// Refuses members that share bytes: an archive with such members could unpack to far more than its file holds.
  private void requireApart(List<ZipMember> members) {
    List<ZipMember> inFile = new ArrayList<>(members);
    inFile.sort((one, other) -> Long.compare(one.extent().offset(), other.extent().offset()));
    long end = 0;
    for (ZipMember member : inFile) {
      long offset = member.extent().offset() - archive.offset();
      if (offset < end) {
        throw malformed(offset, "overlap", member.name(), "begins inside another");
      }
      end = offset + member.extent().length();
    }
  }

  private ByteBuffer read(long offset, int count) {
    if (offset < 0 || offset > archive.length() - count) {
      throw damaged("it has " + archive.length() + " bytes");
    }
    ByteBuffer read = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN);
    bytes.readFully(read, archive.offset() + offset);
    return read.flip();
  }

  private MalformedFileException damaged(String detail) {
    return new MalformedFileException(
        archive.file(),
        archive.offset(),
        "invalid-archive",
        "the ZIP archive is cut or damaged: its directory, at the end, cannot be read: " + detail);
  }

  /// @param offset the fault's offset from the start of the archive
  private MalformedFileException malformed(long offset, String kind, String member, String detail) {
    return new MalformedFileException(
        archive.file(), archive.offset() + offset, kind, "member '" + member + "' " + detail);
  }
}
