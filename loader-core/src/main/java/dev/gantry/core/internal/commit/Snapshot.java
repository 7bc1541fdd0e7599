// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import java.util.List;

/// Files to be written, with copies of their bytes, so that the original memory may change. A
/// snapshot holds the copies' memory until it is closed. Thread-safe.
public final class Snapshot implements AutoCloseable {
  private final List<NewFile> files;
  private final Runnable giveBack;

  /// @param giveBack may be called more than once
  Snapshot(List<NewFile> files, Runnable giveBack) {
    this.files = List.copyOf(files);
    this.giveBack = giveBack;
  }

  /// Returns the files, with copies in place of the parts that were in memory.
  public List<NewFile> files() {
    return files;
  }

  /// Gives the memory back; closing twice does nothing. Afterwards the files' parts must not be
  /// read.
  @Override
  public void close() {
    giveBack.run();
  }
}
