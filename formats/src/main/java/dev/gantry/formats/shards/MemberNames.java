// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.json.JsonReader;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// The members of one JSON object as they come: none may come twice, and some must come. Not
/// thread-safe.
final class MemberNames {
  private final JsonReader json;
  private final String subject;
  private final long position;
  private final Set<String> seen = new HashSet<>();

  /// @param subject what the object is, for errors
  /// @param position where it begins, in bytes
  MemberNames(JsonReader json, String subject, long position) {
    this.json = json;
    this.subject = subject;
    this.position = position;
  }

  /// The name of the member that has begun.
  ///
  /// @throws MalformedFileException of kind `duplicate-field`
  String next() {
    String name = json.memberName();
    if (!seen.add(name)) {
      throw json.malformed("duplicate-field", subject + " has a second '" + name + "'");
    }
    return name;
  }

  /// @throws MalformedFileException of kind `missing-NAME`, with `-` for `_`
  void require(List<String> names) {
    for (String name : names) {
      if (!seen.contains(name)) {
        throw json.malformedAt(
            position, "missing-" + name.replace('_', '-'), subject + " has no '" + name + "'");
      }
    }
  }
}
