// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.DType;
import dev.gantry.formats.webdataset.MemberField;
import java.util.HashMap;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/// Infers the fields of archives' members from the members' extensions and lengths.
public final class MemberKinds {
  private static final String NPY = "npy";

  /// The extensions whose members the webdataset library reads as integers.
  private static final Set<String> INTEGERS =
      Set.of("cls", "cls2", "class", "count", "id", "index", "inx");

  private static final Pattern PICTURE = Pattern.compile("(.*\\.)?(jpg|jpeg|png)", Pattern.DOTALL);

  private final List<String> extensions;
  private final Map<String, LongSummaryStatistics> lengths = new HashMap<>();
  private final long samples;

  public MemberKinds(List<TarIndex> indexes) {
    extensions = indexes.stream().flatMap(index -> index.fields().stream()).distinct().toList();
    samples = indexes.stream().mapToLong(TarIndex::samples).sum();
    extensions.forEach(name -> lengths.put(name, new LongSummaryStatistics()));
    for (TarIndex index : indexes) {
      List<LongSummaryStatistics> ofIndex = index.fieldLengths();
      for (int i = 0; i < ofIndex.size(); i++) {
        lengths(index.fields().get(i)).combine(ofIndex.get(i));
      }
    }
  }

  private LongSummaryStatistics lengths(String extension) {
    return lengths.getOrDefault(extension, new LongSummaryStatistics());
  }

  /// The extensions of all members, in the order in which they first come.
  public List<String> extensions() {
    return extensions;
  }

  /// Whether an extension says that members are pictures.
  public static boolean isPicture(String extension) {
    return PICTURE.matcher(extension).matches();
  }

  /// Whether an extension says that members are NumPy arrays.
  static boolean isNpy(String extension) {
    return extension.equals(NPY) || extension.endsWith("." + NPY);
  }

  /// Whether each sample has a member with an extension.
  public boolean isInAll(String extension) {
    return lengths(extension).getCount() == samples;
  }

  /// Returns the field for an extension that names the kind of its values: a NumPy array or an
  /// integer; empty for any other extension.
  public Optional<MemberField> known(String extension) {
    if (isNpy(extension)) {
      return Optional.of(MemberField.npy(extension));
    }
    return INTEGERS.contains(extension)
        ? Optional.of(MemberField.integer(extension))
        : Optional.empty();
  }

  /// Returns a field of the members' bytes as they are; empty unless all members have one length.
  public Optional<MemberField> ofOneLength(String extension) {
    LongSummaryStatistics found = lengths(extension);
    return found.getMin() == found.getMax()
        ? Optional.of(MemberField.raw(extension, DType.U8, found.getMax()))
        : Optional.empty();
  }

  /// Returns a field of the members' bytes, padded to the longest member.
  public MemberField padded(String extension) {
    return MemberField.padded(
        extension, (int) Math.min(lengths(extension).getMax(), Integer.MAX_VALUE));
  }
}
