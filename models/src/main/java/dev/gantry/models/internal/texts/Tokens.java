// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

/// The tokens of a text or of a pair of texts. The arrays are never changed.
public final class Tokens {
  final long[] ids;

  /// 0 for a token of the first text, 1 for a token of the second; one number for each id.
  final long[] types;

  Tokens(long[] ids, long[] types) {
    this.ids = ids;
    this.types = types;
  }

  int length() {
    return ids.length;
  }
}
