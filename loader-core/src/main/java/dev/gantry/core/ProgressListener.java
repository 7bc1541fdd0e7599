// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Told how far a transfer is: on the thread that started it, about ten times a second and once at the
/// end. An exception ends the transfer.
@FunctionalInterface
public interface ProgressListener {
  /// @param done bytes read so far
  /// @param total bytes to read, blocks at the edges included
  void onProgress(long done, long total);
}
