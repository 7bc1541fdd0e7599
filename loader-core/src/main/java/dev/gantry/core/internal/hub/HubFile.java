// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import java.util.regex.Pattern;

/// The hub's answer about a file.
///
/// @param commit in which the file is
/// @param state its bytes' name and number
record HubFile(String commit, HubVersion state) {
  private static final Pattern ETAG = Pattern.compile("[0-9A-Za-z_-][0-9A-Za-z._-]{0,127}");

  /// Whether a text names bytes, and may be the name of their file.
  static boolean isEtag(String text) {
    return ETAG.matcher(text).matches();
  }
}
