// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.FileBytes;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ZipDirectoryTest {
  private static final int ENTRY_BYTES = 46;
  private static final int END_BYTES = 22;

  @TempDir private Path folder;

  /// Returns an archive of two members, of which the second is stored, a folder and a comment.
  private static byte[] archive(String comment) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
      zip.putNextEntry(new ZipEntry("größe"));
      zip.write(new byte[1000]);
      zip.putNextEntry(new ZipEntry("folder/"));
      ZipEntry stored = new ZipEntry("folder/s");
      stored.setMethod(ZipEntry.STORED);
      stored.setSize(4);
      stored.setCrc(0xb63cfbcdL);
      zip.putNextEntry(stored);
      zip.write(new byte[] {1, 2, 3, 4});
      zip.setComment(comment);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return bytes.toByteArray();
  }

  private List<ZipMember> read(byte[] archive) throws IOException {
    Path file = folder.resolve("archive.zip");
    Files.write(file, archive);
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), file)) {
      List<ZipMember> members = ZipDirectory.read(bytes);
      for (ZipMember member : members) {
        byte[] contents = new byte[(int) member.size()];
        member.decompress(bytes, 0, MemorySegment.ofArray(contents));
      }
      return members;
    }
  }

  private static List<String> described(List<ZipMember> members) {
    return members.stream()
        .map(member -> member.name() + " " + member.size() + " " + member.isDeflated())
        .toList();
  }

  @ParameterizedTest
  @CsvSource({"0", "1", "65535"})
  void membersAreFoundAlsoBeforeAComment(int comment) throws IOException {
    assertThat(described(read(archive("c".repeat(comment)))))
        .containsExactly("größe 1000 true", "folder/s 4 false");
  }

  @Test
  void anArchiveMayHaveNoMembers() throws IOException {
    assertThat(read(Arrays.copyOf(new byte[] {'P', 'K', 5, 6}, END_BYTES))).isEmpty();
  }

  /// Returns the archive with the records of ZIP64, and with the sizes and the offset of its last
  /// entry in an extra field, which follows a field of another kind.
  private static byte[] large(Consumer<ByteBuffer> change) {
    byte[] small = archive("");
    ByteBuffer old = ByteBuffer.wrap(small).order(ByteOrder.LITTLE_ENDIAN);
    int start = old.getInt(small.length - END_BYTES + 16);
    int last = small.length - END_BYTES - ENTRY_BYTES - "folder/s".length();
    int end = small.length - END_BYTES + 6 + 28;
    ByteBuffer all = ByteBuffer.allocate(end + 56 + 20 + END_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    all.put(small, 0, small.length - END_BYTES);
    all.putShort((short) 0x5455).putShort((short) 2).putShort((short) 0);
    all.putShort((short) 1)
        .putShort((short) 24)
        .putLong(4)
        .putLong(4)
        .putLong(old.getInt(last + 42));
    all.putShort(last + 30, (short) 34);
    all.putInt(last + 20, -1).putInt(last + 24, -1).putInt(last + 42, -1);
    all.putInt(0x06064b50).position(end + 40).putLong(end - start).putLong(start);
    all.putInt(0x07064b50).putInt(0).putLong(end).putInt(1);
    all.putInt(0x06054b50).putLong(-1).putInt(-1).putInt(-1);
    change.accept(all);
    return all.array();
  }

  @Test
  void numbersOfMoreThan32BitsLieElsewhere() throws IOException {
    assertThat(described(read(large(_ -> {}))))
        .containsExactly("größe 1000 true", "folder/s 4 false");
  }

  private MalformedFileException fault(byte[] archive) {
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> read(archive));
    assertThat(fault).isNotNull();
    assertThat(fault.offset()).isBetween(0L, (long) archive.length);
    assertThat(fault.getMessage()).doesNotContain("\n");
    return fault;
  }

  @ParameterizedTest
  @CsvSource({
    "0, invalid-archive", // the entry's signature
    "8, encrypted",
    "10, unknown-compression",
    "16, checksum-mismatch",
    "20, size-mismatch", // the compressed size
    "23, member-past-end",
    "24, size-mismatch", // the size
    "28, invalid-archive", // the length of the name
    "33, invalid-archive", // the length of the comment
    "42, invalid-archive", // the offset of the local header
    "45, member-past-end"
  })
  void aDamagedEntryIsRefused(int at, String kind) {
    byte[] archive = archive("");
    archive[archive.length - END_BYTES - ENTRY_BYTES - "folder/s".length() + at] ^= 1;
    assertThat(fault(archive)).hasMessageContaining(kind);
  }

  @ParameterizedTest
  @CsvSource({"40, -1", "40, 9223372036854775807", "48, -1", "48, 9223372036854775807", "64, -8"})
  void aDamagedRecordIsRefused(int at, long number) {
    int records = 56 + 20 + END_BYTES;
    assertThat(fault(large(all -> all.putLong(all.capacity() - records + at, number))).kind())
        .isEqualTo("invalid-archive");
  }

  @ParameterizedTest
  @CsvSource({"-1, member-past-end", "9223372036854775807, member-past-end"})
  void aNumberOfMoreThanTheFileHasIsRefused(long number, String kind) {
    int extra = 56 + 20 + END_BYTES + 24;
    for (int at = 0; at < 24; at += 8) {
      int place = at;
      assertThat(fault(large(all -> all.putLong(all.capacity() - extra + place, number))).kind())
          .isEqualTo(place == 0 && number > 0 ? "size-mismatch" : kind);
    }
  }

  @Test
  void membersThatShareBytesAreRefused() {
    byte[] archive = archive("");
    ByteBuffer bytes = ByteBuffer.wrap(archive).order(ByteOrder.LITTLE_ENDIAN);
    int last = archive.length - END_BYTES - ENTRY_BYTES - "folder/s".length();
    int start = bytes.getInt(archive.length - END_BYTES + 16);
    assertThat(new String(archive, start + ENTRY_BYTES, 5, StandardCharsets.UTF_8))
        .startsWith("gr");
    // Both entries have the offset of the first member.
    bytes.putInt(last + 42, bytes.getInt(start + 42));
    assertThat(fault(archive).kind()).isEqualTo("overlap");
  }

  @Test
  void anArchiveThatIsCutIsRefused() {
    byte[] archive = archive("");
    for (int length = 0; length < archive.length; length++) {
      assertThat(fault(Arrays.copyOf(archive, length)).kind()).isEqualTo("invalid-archive");
    }
  }

  @Test
  void aMemberThatGivesMoreBytesThanItSaysIsRefused() {
    byte[] archive = archive("");
    ByteBuffer bytes = ByteBuffer.wrap(archive).order(ByteOrder.LITTLE_ENDIAN);
    int first = bytes.getInt(archive.length - END_BYTES + 16);
    bytes.putInt(first + 24, 999);
    assertThat(fault(archive)).hasMessageContaining("more than 999 bytes come out of a member");
  }

  /// The bound is 32 MiB.
  @Test
  void aDirectoryThatIsTooLongIsNotRead() throws IOException {
    int bytes = (32 << 20) + 1;
    ByteBuffer end = ByteBuffer.allocate(END_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    end.putInt(0x06054b50).putInt(12, bytes);
    Path file = folder.resolve("sparse.zip");
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      assertThat(channel.write(end.rewind(), bytes)).isEqualTo(END_BYTES);
    }
    try (FileBytes archive = FileBytes.open(GantrySession.shared(), file)) {
      assertThatThrownBy(() -> ZipDirectory.read(archive))
          .hasMessageContaining("the directory has " + bytes + " bytes from offset 0 on");
    }
  }
}
