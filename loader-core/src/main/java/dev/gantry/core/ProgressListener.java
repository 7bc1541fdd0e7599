// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Receives the number of bytes that a transfer has read, about ten times a second and once at the
/// end, on the thread that started the transfer. An exception that the listener throws ends the
/// transfer.
@FunctionalInterface
public interface ProgressListener {
  /// @param done bytes read so far
  /// @param total bytes to read, blocks at the edges included
  void onProgress(long done, long total);
}
