// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

/// Whether TFRecord files are read by their indexes or as streams. A damaged index is an error,
/// unless no index is used.
public enum IndexUse {
  /// Files are read by their indexes if each file has an up-to-date one and the indexes hold all
  /// features. Otherwise all files are read as streams, and the reason is logged. Ranks that
  /// shuffle streams have another order than ranks that shuffle by indexes; by default, shuffling
  /// on several ranks without indexes is therefore refused.
  WHERE_THERE,
  /// Files are read by their indexes, which are built where they are missing or old, or lack a feature: that reads the
  /// files once, and writes beside them. Compressed files cannot be indexed, and features cannot be read by an index
  /// that some record lacks or that have another length in some: then this is an error.
  BUILD,
  /// Files are read by their indexes; a file without a usable index is an error.
  REQUIRE,
  /// Files are read as streams.
  NONE
}
