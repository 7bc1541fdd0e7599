// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import dev.gantry.core.MalformedFileException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// Checks the names of one JSON object's members as they are read: no name may come twice, and
/// some names are required. Not thread-safe.
public final class MemberNames {
  private final JsonReader json;
  private final String subject;
  private final long position;
  private final Set<String> seen = new HashSet<>();

  /// @param subject says in errors what the object is
  /// @param position the file offset at which the object begins
  public MemberNames(JsonReader json, String subject, long position) {
    this.json = json;
    this.subject = subject;
    this.position = position;
  }

  /// Returns the name of the member that has begun.
  ///
  /// @throws MalformedFileException of kind `duplicate-field`
  public String next() {
    String name = json.memberName();
    if (!seen.add(name)) {
      throw json.malformed("duplicate-field", subject + " has a second '" + name + "'");
    }
    return name;
  }

  /// @throws MalformedFileException of kind `missing-NAME`, with `-` for `_`
  public void require(List<String> names) {
    for (String name : names) {
      if (!seen.contains(name)) {
        throw json.malformedAt(
            position, "missing-" + name.replace('_', '-'), subject + " has no '" + name + "'");
      }
    }
  }
}
