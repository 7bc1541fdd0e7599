// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.archive;

import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.zip.ZipEntry;
import org.apache.commons.compress.archivers.zip.ZipArchiveEntry;
import org.apache.commons.compress.archivers.zip.ZipFile;

/// Reads the directory of a ZIP archive. Its members are stored or deflated, and share no bytes.
public final class ZipDirectory {
  /// The most bytes of a directory: more than any real one has, so that none can fill the heap.
  private static final long MAX_DIRECTORY_BYTES = 32 << 20;

  /// The size of a local header without the member's name.
  private static final int LOCAL_HEADER_BYTES = 30;

  private final FileBytes bytes;
  private final Extent archive;

  private ZipDirectory(FileBytes bytes, Extent archive) {
    this.bytes = bytes;
    this.archive = archive;
  }

  /// Whether bytes begin as a ZIP archive, with or without members.
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
  /// @param archive the place of the whole archive in the file
  /// @throws MalformedFileException if the directory is damaged, members share bytes, or one is encrypted
  ///     or compressed in another way than by deflate
  public static List<ZipMember> read(FileBytes bytes, Extent archive) {
    ZipDirectory directory = new ZipDirectory(bytes, archive);
    List<ZipArchiveEntry> entries = directory.entries();
    directory.requireApart(entries);
    return entries.stream().map(directory::member).toList();
  }

  private List<ZipArchiveEntry> entries() {
    var channel = new ArchiveChannel(bytes, archive, MAX_DIRECTORY_BYTES);
    // A local header's times and notes take longer to parse than all else, and nobody wants them.
    try (ZipFile opened =
        ZipFile.builder().setSeekableByteChannel(channel).setIgnoreLocalFileHeader(true).get()) {
      List<ZipArchiveEntry> members =
          Collections.list(opened.getEntries()).stream()
              .filter(entry -> !entry.isDirectory())
              .toList();
      for (ZipArchiveEntry member : members) {
        // Finds out where the member's bytes begin.
        opened.getRawInputStream(member).close();
      }
      return members;
    } catch (IOException | IllegalArgumentException damage) {
      throw malformed(
          0,
          "invalid-archive",
          "the ZIP archive is cut or damaged: its directory, at the end, cannot be read: "
              + reason(damage));
    }
  }

  private static String reason(Exception damage) {
    Throwable cause = damage.getCause();
    return String.valueOf((cause == null ? damage : cause).getMessage());
  }

  /// Refuses members that share bytes: an archive with such members could unpack to far more than its file holds.
  private void requireApart(List<ZipArchiveEntry> members) {
    List<ZipArchiveEntry> inFile =
        members.stream().sorted(Comparator.comparingLong(ZipArchiveEntry::getDataOffset)).toList();
    long end = 0;
    for (ZipArchiveEntry member : inFile) {
      long offset = member.getDataOffset();
      if (offset < end || offset < 0) {
        throw malformed(Math.max(0, offset), "overlap", subject(member) + " begins inside another");
      }
      if (member.getCompressedSize() < 0
          || member.getSize() < 0
          || member.getCompressedSize() > archive.length() - offset) {
        throw malformed(
            offset, "member-past-end", subject(member) + " ends after the end of the file");
      }
      end = offset + member.getCompressedSize();
    }
  }

  private ZipMember member(ZipArchiveEntry entry) {
    long offset = entry.getDataOffset();
    if (entry.getGeneralPurposeBit().usesEncryption()) {
      throw malformed(offset, "encrypted", subject(entry) + " is encrypted");
    }
    boolean deflated =
        switch (entry.getMethod()) {
          case ZipEntry.STORED -> false;
          case ZipEntry.DEFLATED -> true;
          default ->
              throw malformed(
                  offset,
                  "unknown-compression",
                  "%s is compressed by method %s; Gantry reads stored and deflated members"
                      .formatted(subject(entry), entry.getMethod()));
        };
    ZipMember member =
        new ZipMember(
            entry.getName(),
            new Extent(archive.file(), archive.offset() + offset, entry.getCompressedSize()),
            entry.getSize(),
            (int) entry.getCrc(),
            deflated);
    member.requirePlausible();
    return member;
  }

  private static String subject(ZipArchiveEntry member) {
    return "member '" + member.getName() + "'";
  }

  /// @param offset the fault's offset from the start of the archive
  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(archive.file(), archive.offset() + offset, kind, detail);
  }
}
