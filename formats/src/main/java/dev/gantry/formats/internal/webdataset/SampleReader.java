// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import java.util.HashSet;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;

/// Reads the members of an archive that are values of samples. Consecutive members with the same
/// key are one sample. Members that belong to no sample are skipped. Not thread-safe.
public final class SampleReader implements AutoCloseable {
  /// The most members of one sample.
  public static final int MAX_FIELDS = 4096;

  private static final String META = "__";

  private final TarReader tar;
  private final Set<String> fields = new HashSet<>();
  private String key = "";
  private long samples;

  SampleReader(TarReader tar) {
    this.tar = tar;
  }

  /// Opens an archive, as [TarReader#open] does.
  public static SampleReader open(GantrySession session, Location file) {
    return new SampleReader(TarReader.open(session, file));
  }

  /// One value of a sample.
  ///
  /// @param sample the sample's number in the archive, from 0
  /// @param field the member's extension in lower case
  public record Value(long sample, String key, String field, TarMember member) {}

  /// The archive, at the data of the current value.
  public TarReader tar() {
    return tar;
  }

  /// Goes to the next value.
  ///
  /// @return the value; empty at the end of the archive
  /// @throws dev.gantry.core.MalformedFileException of kind `duplicate-member`, and as [TarReader#next]
  ///     does
  public Optional<Value> next() {
    for (Optional<TarMember> next = tar.next(); next.isPresent(); next = tar.next()) {
      TarMember member = next.get();
      int dot = member.isFile() && !isMeta(member.name()) ? dot(member.name()) : -1;
      if (dot >= 0) {
        return Optional.of(value(member, dot));
      }
    }
    return Optional.empty();
  }

  private Value value(TarMember member, int dot) {
    String name = member.name().substring(0, dot);
    if (samples == 0 || !name.equals(key)) {
      samples++;
      key = name;
      fields.clear();
    }
    String field = member.name().substring(dot + 1).toLowerCase(Locale.ROOT);
    if (!fields.add(field)) {
      throw tar.fault(
          member.header(),
          "duplicate-member",
          "sample '" + key + "' has two members with the extension '" + field + "'");
    }
    if (fields.size() > MAX_FIELDS) {
      throw tar.fault(
          member.header(),
          "too-many-members",
          "sample '" + key + "' has more than " + MAX_FIELDS + " members");
    }
    return new Value(samples - 1, key, field, member);
  }

  /// Whether a member describes the archive and belongs to no sample: its name, or the name of
  /// its outermost folder, has the form `__meta__`.
  private static boolean isMeta(String name) {
    int slash = name.indexOf('/');
    String first = slash < 0 ? name : name.substring(0, slash);
    return first.length() >= 2 * META.length() && first.startsWith(META) && first.endsWith(META);
  }

  /// Returns the index of the dot between key and extension, which is the first dot in the base
  /// name; -1 if there is no such dot. If the base name begins with the dot, the folder is the
  /// key; there is no key if there is no folder or the folder's name has a dot itself. These are
  /// the rules of the webdataset library's pattern.
  static int dot(String name) {
    int base = name.lastIndexOf('/') + 1;
    int dot = name.indexOf('.', base);
    if (dot != base) {
      return dot;
    }
    int folder = name.lastIndexOf('/', base - 2) + 1;
    return base > 0 && name.substring(folder, base).indexOf('.') < 0 ? dot : -1;
  }

  @Override
  public void close() {
    tar.close();
  }
}
