// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.npy.NpyHeader;
import dev.gantry.formats.internal.npy.NpyInput;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.webdataset.MemberField;
import java.util.List;

/// A wanted field that was found in every sample of all archives.
///
/// @param field the field in batches
/// @param skipped the bytes of each member before the elements, such as the header of a NumPy array
/// @param members for each archive, which of the archive's fields are the wanted field
/// @param isInFiles whether the elements lie in the members as memory holds them
/// @param spacing the most bytes from one sample's value to the next one's
/// @param aligned whether every value begins at a multiple of its elements' size
record StoredMember(
    MemberField wanted,
    Field field,
    long skipped,
    List<boolean[]> members,
    boolean isInFiles,
    long spacing,
    boolean aligned) {
  /// The longest member that is decoded or padded.
  private static final long MAX_ENCODED_BYTES = 1L << 30;

  FieldSource source() {
    return isInFiles ? new FieldSource.InFiles(spacing, aligned) : new FieldSource.HostWritten();
  }

  /// Finds a field in all samples.
  ///
  /// @param indexes the indexes of the archives, which together have at least one sample
  /// @throws MisuseException if a sample lacks the field, or has it in another form than wanted
  static StoredMember of(GantrySession session, MemberField wanted, List<TarIndex> indexes) {
    List<boolean[]> members =
        indexes.stream().map(index -> members(index, wanted.extensions())).toList();
    Finder finder = new Finder(wanted, indexes, members);
    return switch (wanted) {
      case MemberField.Raw(_, DType dtype, TensorShape shape) -> {
        Field field = new Field(wanted.name(), dtype, shape);
        finder.requireLength(field.sampleBytes());
        yield finder.inFiles(field, 0);
      }
      case MemberField.Npy _ -> npy(session, finder);
      case MemberField.IntegerText _ -> {
        finder.requireIntegers();
        yield finder.written(new Field(wanted.name(), DType.I64, TensorShape.of()));
      }
      case MemberField.Padded(_, int most) -> {
        finder.requireAtMost(most);
        yield finder.written(new Field(wanted.name(), DType.U8, TensorShape.of(most)));
      }
      case MemberField.Decoded(_, DType dtype, TensorShape shape, _) -> {
        finder.requireAtMost(MAX_ENCODED_BYTES);
        yield finder.written(new Field(wanted.name(), dtype, shape));
      }
    };
  }

  private static boolean[] members(TarIndex index, List<String> extensions) {
    boolean[] wanted = new boolean[index.fields().size()];
    for (int i = 0; i < wanted.length; i++) {
      wanted[i] = extensions.contains(index.fields().get(i));
    }
    return wanted;
  }

  private static StoredMember npy(GantrySession session, Finder finder) {
    TarIndex index = finder.firstIndex();
    long first = index.member(0, finder.members.get(finder.indexes.indexOf(index)));
    if (first < 0) {
      throw finder.unfit(index, 0, "the sample has no such member");
    }
    Location file = index.data();
    NpyHeader header;
    try (FileBytes bytes = FileBytes.open(session, file)) {
      String subject = "sample 0, '" + finder.wanted.name() + "': ";
      header =
          NpyHeader.read(NpyInput.ofFile(bytes, subject, index.offset(first), index.length(first)));
    }
    if (!(header.encoding() instanceof Encoding.Plain)) {
      throw finder.unfit(
          index, 0, "the array must be little endian and in C order, as batches are");
    }
    if (index.value(first) == TarIndex.NO_VALUE) {
      throw finder.unfit(index, 0, "the array's header is too long to be compared with the others");
    }
    finder.requireLength(index.length(first));
    finder.requireValue(index.value(first));
    return finder.inFiles(
        new Field(finder.wanted.name(), header.dtype(), header.shape()), header.headerBytes());
  }

  /// Checks the field's member in every sample.
  private record Finder(MemberField wanted, List<TarIndex> indexes, List<boolean[]> members) {
    /// Checks one member.
    @FunctionalInterface
    private interface Check {
      /// Returns why a member does not fit the field, in words; an empty text if it fits.
      String fault(TarIndex index, long member);
    }

    TarIndex firstIndex() {
      return indexes.stream().filter(index -> index.samples() > 0).findFirst().orElseThrow();
    }

    void forEach(Check check) {
      for (int i = 0; i < indexes.size(); i++) {
        TarIndex index = indexes.get(i);
        for (long sample = 0; sample < index.samples(); sample++) {
          long member = index.member(sample, members.get(i));
          String fault = member < 0 ? "the sample has no such member" : check.fault(index, member);
          if (!fault.isEmpty()) {
            throw unfit(index, sample, fault);
          }
        }
      }
    }

    void requireLength(long bytes) {
      forEach((index, member) ->
          index.length(member) == bytes
              ? ""
              : "the member has " + index.length(member) + " bytes, not " + bytes);
    }

    void requireAtMost(long bytes) {
      forEach((index, member) ->
          index.length(member) <= bytes
              ? ""
              : "the member has " + index.length(member) + " bytes, more than " + bytes);
    }

    void requireIntegers() {
      forEach((index, member) ->
          index.value(member) == TarIndex.NO_VALUE
              ? "the member is not an integer in decimal digits"
              : "");
    }

    void requireValue(long value) {
      forEach((index, member) ->
          index.value(member) == value
              ? ""
              : "the member's dtype, shape or order is not that of the first sample");
    }

    StoredMember written(Field field) {
      return new StoredMember(wanted, field, 0, members, false, 0, true);
    }

    StoredMember inFiles(Field field, long skipped) {
      long spacing = field.sampleBytes();
      boolean aligned = true;
      for (int i = 0; i < indexes.size(); i++) {
        TarIndex index = indexes.get(i);
        long before = -1;
        for (long sample = 0; sample < index.samples(); sample++) {
          long at = index.offset(index.member(sample, members.get(i))) + skipped;
          aligned &= at % field.dtype().alignmentBytes() == 0;
          spacing = before < 0 ? spacing : Math.max(spacing, at - before);
          before = at;
        }
      }
      return new StoredMember(wanted, field, skipped, members, true, spacing, aligned);
    }

    MisuseException unfit(TarIndex index, long sample, String fault) {
      return new MisuseException(
          "field '%s' of sample %s of %s: %s; the samples have %s"
              .formatted(wanted.extension(), sample, index.file(), fault, index.fields()));
    }
  }
}
