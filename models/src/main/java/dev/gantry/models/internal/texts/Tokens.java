// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

/// The tokens of a text, or of a pair of texts. Nobody changes the arrays.
public final class Tokens {
  final long[] ids;

  /// 0 for the tokens of the first text, 1 for those of the second; as many as ids.
  final long[] types;

  Tokens(long[] ids, long[] types) {
    this.ids = ids;
    this.types = types;
  }

  int length() {
    return ids.length;
  }
}
