// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.formats.spi.FileBytes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

/// Recognises other file formats by their first bytes, so that an error can say what the file is.
public final class OtherFormats {
  private record Signature(String start, String description) {}

  /// The description of such a file, which errors about its index use, too.
  public static final String TFRECORD = "TFRecord, which TfRecordDataset reads";

  /// The description of a tar archive, used as [#TFRECORD] is.
  public static final String TAR = "a tar archive, which WebDataset reads";

  private static final ValueLayout.OfInt SUM =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final ValueLayout.OfLong HEADER_LENGTH =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /// The most bytes of a safetensors header. Source: the reference implementation's
  /// `MAX_HEADER_SIZE`.
  public static final long MAX_SAFETENSORS_HEADER_BYTES = 100_000_000;

  private static final String SAFETENSORS = "safetensors, which Weights.open reads";

  private static final String PICKLE = "a Python pickle, such as older PyTorch writes";

  /// The known formats' first bytes, one ISO-8859-1 character for each byte.
  private static final List<Signature> SIGNATURES =
      List.of(
          new Signature(
              "version https://git-lfs",
              "a Git LFS pointer, not the file itself; `git lfs pull` gets the file"),
          new Signature("PK\u0003\u0004", "a ZIP archive, such as NumPy and PyTorch write"),
          new Signature("\u0080\u0002", PICKLE),
          new Signature("\u0080\u0003", PICKLE),
          new Signature("\u0080\u0004", PICKLE),
          new Signature("\u0080\u0005", PICKLE),
          new Signature("GGUF", "a GGUF file"),
          new Signature("PAR1", "a Parquet file"),
          new Signature("\u0089PNG", "a PNG picture"),
          new Signature("\u00ff\u00d8\u00ff", "a JPEG picture"),
          new Signature("\u0089HDF", "an HDF5 file, as Keras writes them; save it as safetensors"),
          new Signature("\u0093NUMPY", "a NumPy array; save it as safetensors"),
          new Signature("\u001f\u008b", "compressed with gzip; decompress it first"),
          new Signature("(\u00b5/\u00fd", "compressed with Zstandard; decompress it first"),
          new Signature(
              "<", "HTML or XML, as of an error that was downloaded instead of the file"));

  private static final String TAR_MAGIC = "ustar";
  private static final int TAR_MAGIC_AT = 257;

  /// How many of a file's first bytes suffice to recognise its format.
  public static final int START_BYTES = TAR_MAGIC_AT + TAR_MAGIC.length();

  private OtherFormats() {}

  /// Describes a file, to follow `the file is` in an error; empty if its start is of no known format.
  public static Optional<String> describe(FileBytes file) {
    ByteBuffer bytes = ByteBuffer.allocate((int) Math.min(START_BYTES, file.length()));
    file.readFully(bytes, 0);
    return describe(bytes.flip());
  }

  private static Optional<String> describe(ByteBuffer bytes) {
    if (isTfRecord(bytes)) {
      return Optional.of(TFRECORD);
    }
    String start = StandardCharsets.ISO_8859_1.decode(bytes.duplicate()).toString();
    if (start.startsWith(TAR_MAGIC, TAR_MAGIC_AT)) {
      return Optional.of(TAR);
    }
    return SIGNATURES.stream()
        .filter(signature -> start.startsWith(signature.start()))
        .map(Signature::description)
        .findFirst();
  }

  /// Whether the file begins with a record's length and the right checksum of the length.
  private static boolean isTfRecord(ByteBuffer bytes) {
    MemorySegment start = MemorySegment.ofBuffer(bytes);
    return start.byteSize() >= Long.BYTES + Integer.BYTES
        && Crc32c.masked(Crc32c.of(start.asSlice(0, Long.BYTES))) == start.get(SUM, Long.BYTES);
  }

  /// Whether a file begins with a possible length of a header, followed by the start of a JSON
  /// object.
  public static boolean isSafetensors(ByteBuffer bytes) {
    MemorySegment start = MemorySegment.ofBuffer(bytes);
    if (start.byteSize() <= Long.BYTES) {
      return false;
    }
    long length = start.get(HEADER_LENGTH, 0);
    return length > 0
        && length <= MAX_SAFETENSORS_HEADER_BYTES
        && start.get(ValueLayout.JAVA_BYTE, Long.BYTES) == '{';
  }

  /// Returns the end of an error's reason, which names the format that the file has instead; empty if its start is
  /// of no known format.
  public static String instead(ByteBuffer start) {
    return describe(start)
        .or(() -> isSafetensors(start) ? Optional.of(SAFETENSORS) : Optional.empty())
        .map("; the file is "::concat)
        .orElse("");
  }

  /// Returns the end of an error's reason, which names the format of a folder's first file; empty if
  /// the file cannot be read, or its start is of no known format.
  public static String instead(Folder folder) {
    return folder.files().stream()
        .filter(file -> !file.fileName().startsWith(".") && !file.fileName().startsWith("_"))
        .findFirst()
        .flatMap(file ->
            describe(folder, file).map(what -> "; its file " + file.fileName() + " is " + what))
        .orElse("");
  }

  private static Optional<String> describe(Folder folder, Location file) {
    try (FileBytes bytes = FileBytes.open(folder.session(), file)) {
      return describe(bytes);
    } catch (GantryException _) {
      return Optional.empty();
    }
  }

  /// Refuses an empty file, such as a failed download leaves.
  public static void refuseEmpty(FileBytes file) {
    if (file.length() == 0) {
      throw new MalformedFileException(file.file(), 0, "empty-file", "the file is empty");
    }
  }

  /// Refuses a file that is empty, or begins as a file of another known format does.
  ///
  /// @param wanted the format that was expected
  public static void refuse(FileBytes file, String wanted) {
    refuseEmpty(file);
    describe(file)
        .ifPresent(other -> {
          throw new MalformedFileException(
              file.file(), 0, "another-format", "not " + wanted + ": the file is " + other);
        });
  }
}
