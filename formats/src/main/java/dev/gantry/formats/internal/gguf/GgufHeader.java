// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;

/// The checked contents of one file's header.
///
/// @param notes the file's notes as text, by their keys
/// @param tensors the tensors in the order of the header; quantised tensors have the shape of
///     their stored blocks
/// @param values the same tensors, with quantised tensors described by their values
record GgufHeader(
    Location file,
    SequencedMap<String, String> notes,
    List<StoredTensor> tensors,
    List<StoredTensor> values) {
  private static final String ALIGNMENT = "general.alignment";
  private static final long USUAL_ALIGNMENT = 32;

  private static final int MAX_TENSORS = 1_000_000;
  private static final int MAX_NOTES = 100_000;

  /// The longest key, in bytes. Source: the format's specification.
  private static final int MAX_NAME_BYTES = 65_535;

  /// The most axes of a tensor. Source: ggml's `GGML_MAX_DIMS`.
  private static final int MAX_RANK = 4;

  /// The fewest bytes of a note: its key's length, its type and a value.
  private static final int MIN_NOTE_BYTES = Long.BYTES + Integer.BYTES + 1;

  /// The fewest bytes of a tensor's description: its name's length, the number of axes, its type and offset.
  private static final int MIN_TENSOR_BYTES = 2 * Long.BYTES + 2 * Integer.BYTES;

  private static final int MAGIC = 0x46554747;

  static boolean hasMagic(ByteBuffer start) {
    return start.remaining() >= Integer.BYTES
        && start.duplicate().order(ByteOrder.LITTLE_ENDIAN).getInt() == MAGIC;
  }

  /// Reads and checks a header.
  ///
  /// @throws dev.gantry.core.MalformedFileException if the header breaks a rule of the format,
  ///     with a kind for each rule
  static GgufHeader read(FileBytes file) {
    return new Parser(file).parse();
  }

  /// A tensor as the header describes it.
  ///
  /// @param at the file offset of the tensor's type and offset in the header
  /// @param offset the offset of the tensor's first byte, from the start of the data section
  private record Described(
      long at, String name, GgufType type, TensorShape shape, long offset, long bytes) {}

  private static final class Parser {
    private final FileBytes file;
    private final GgufInput input;
    private final SequencedMap<String, String> notes = new LinkedHashMap<>();
    private final List<Described> infos = new ArrayList<>();
    private long alignment = USUAL_ALIGNMENT;

    Parser(FileBytes file) {
      this.file = file;
      this.input = new GgufInput(file);
    }

    GgufHeader parse() {
      if (input.remaining() < Integer.BYTES || input.int32() != MAGIC) {
        OtherFormats.refuse(file, "GGUF");
        throw input.malformed(0, "bad-magic", "a GGUF file begins with GGUF, and this does not");
      }
      requireVersion(input.int32());
      long tensors = input.count(MAX_TENSORS, MIN_TENSOR_BYTES, "tensors");
      long count = input.count(MAX_NOTES, MIN_NOTE_BYTES, "notes");
      for (long i = 0; i < count; i++) {
        readNote();
      }
      Set<String> names = new HashSet<>();
      for (long i = 0; i < tensors; i++) {
        long at = input.offset();
        Described info = readInfo();
        if (!names.add(info.name())) {
          throw input.malformed(
              at, "duplicate-tensor", "tensor '" + info.name() + "' occurs twice");
        }
        infos.add(info);
      }
      long start = Math.ceilDiv(input.offset(), alignment) * alignment;
      requireInFile(start);
      return new GgufHeader(
          file.file(),
          notes,
          infos.stream().map(info -> tensor(info, start, false)).toList(),
          infos.stream().map(info -> tensor(info, start, true)).toList());
    }

    private void requireVersion(int version) {
      if ((version & 0xFFFF) == 0 && version != 0) {
        throw input.malformed(
            Integer.BYTES,
            "big-endian",
            "the file is of a big-endian machine; Gantry reads little-endian files");
      }
      if (version != 2 && version != 3) {
        throw input.malformed(
            Integer.BYTES,
            "unknown-version",
            "version " + Integer.toUnsignedString(version) + " is neither 2 nor 3");
      }
    }

    private void readNote() {
      long at = input.offset();
      String key = input.name(MAX_NAME_BYTES);
      GgufNote type = GgufNote.type(input);
      long valueAt = input.offset();
      String value = type.read(input);
      if (notes.put(key, value) != null) {
        throw input.malformed(at, "duplicate-note", "note '" + key + "' occurs twice");
      }
      if (key.equals(ALIGNMENT)) {
        boolean isCount = type == GgufNote.UINT32;
        alignment = isCount ? Long.parseLong(value) : 0;
        if (Long.bitCount(alignment) != 1) {
          throw input.malformed(
              valueAt,
              "invalid-alignment",
              ALIGNMENT
                  + " must be a power of two, of type UINT32 (was "
                  + type
                  + " "
                  + value
                  + ")");
        }
      }
    }

    private Described readInfo() {
      String name = input.name(MAX_NAME_BYTES);
      long at = input.offset();
      int rank = input.int32();
      if (rank < 0 || rank > MAX_RANK) {
        throw input.malformed(
            at,
            "too-many-axes",
            "%s has %s axes, more than %s"
                .formatted(subject(name), Integer.toUnsignedString(rank), MAX_RANK));
      }
      long[] dimensions = new long[rank];
      for (int axis = rank - 1; axis >= 0; axis--) {
        dimensions[axis] = input.int64();
        if (dimensions[axis] < 0) {
          throw overflow(at, name);
        }
      }
      long typeAt = input.offset();
      int number = input.int32();
      GgufType type =
          GgufType.numbered(number)
              .orElseThrow(() ->
                  input.malformed(
                      typeAt,
                      "unknown-type",
                      subject(name)
                          + " has type "
                          + Integer.toUnsignedString(number)
                          + ", which Gantry does not know"));
      TensorShape shape = TensorShape.of(dimensions);
      long elements = shape.elements().orElseThrow(() -> overflow(at, name));
      if (elements > Long.MAX_VALUE / type.blockBytes()) {
        throw overflow(at, name);
      }
      if (type.dtype().isEmpty() && !GgufBlocks.fits(shape)) {
        throw input.malformed(
            at, "shape-overflow", subject(name) + " has more than 2³¹ rows or elements of a row");
      }
      long row = rank == 0 ? 1 : dimensions[rank - 1];
      if (row % type.blockElements() != 0) {
        throw input.malformed(
            at,
            "partial-block",
            "%s of type %s has rows of %s elements, which are no whole blocks of %s"
                .formatted(subject(name), type, row, type.blockElements()));
      }
      long offsetAt = input.offset();
      long bytes = elements / type.blockElements() * type.blockBytes();
      return new Described(offsetAt, name, type, shape, input.int64(), bytes);
    }

    private RuntimeException overflow(long at, String name) {
      return input.malformed(
          at, "shape-overflow", subject(name) + " has too many elements to count");
    }

    /// Requires that each tensor is aligned, lies within the file, and shares no byte with another.
    private void requireInFile(long start) {
      long data = Math.max(0, file.length() - start);
      for (Described info : infos) {
        if (info.offset() % alignment != 0) {
          throw input.malformed(
              info.at(),
              "unaligned-offset",
              "%s begins at %s of the data, which is not a multiple of %s"
                  .formatted(
                      subject(info.name()), Long.toUnsignedString(info.offset()), alignment));
        }
        if (info.offset() < 0 || info.bytes() > data || info.offset() > data - info.bytes()) {
          throw input.malformed(
              info.at(),
              "data-past-end",
              "%s takes %s bytes from %s of the data on, and the data has %s"
                  .formatted(
                      subject(info.name()),
                      info.bytes(),
                      Long.toUnsignedString(info.offset()),
                      data));
        }
      }
      long end = 0;
      for (Described info :
          infos.stream().sorted(Comparator.comparingLong(Described::offset)).toList()) {
        if (info.bytes() > 0 && info.offset() < end) {
          throw input.malformed(
              info.at(), "overlap", subject(info.name()) + " begins inside another tensor");
        }
        end = Math.max(end, info.offset() + info.bytes());
      }
    }

    private StoredTensor tensor(Described info, long start, boolean value) {
      Extent extent = new Extent(file.file(), start + info.offset(), info.bytes());
      return info.type()
          .dtype()
          .map(dtype -> new StoredTensor(info.name(), dtype, info.shape(), extent))
          .orElseGet(() -> {
            StoredTensor blocks = GgufBlocks.stored(info.name(), info.type(), info.shape(), extent);
            return value ? GgufBlocks.value(blocks, info.type(), info.shape()) : blocks;
          });
    }

    private static String subject(String name) {
      return "tensor '" + name + "'";
    }
  }
}
