// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import java.util.regex.Pattern;

/// The hub's answer about a file.
///
/// @param commit the commit that has the file
/// @param state the ETag and the size of the file's bytes
record HubFile(String commit, HubVersion state) {
  private static final Pattern ETAG = Pattern.compile("[0-9A-Za-z_-][0-9A-Za-z._-]{0,127}");

  /// Whether a text is an ETag that can safely be a file name.
  static boolean isEtag(String text) {
    return ETAG.matcher(text).matches();
  }
}
