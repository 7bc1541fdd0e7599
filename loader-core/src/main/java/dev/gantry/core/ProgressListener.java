package dev.gantry.core;

/// Hears how far a transfer is. Called on the thread that asked for the transfer, some ten times a
/// second and once at the end; what it throws ends the transfer.
@FunctionalInterface
public interface ProgressListener {
  /// @param done bytes read so far
  /// @param total bytes to read, blocks at the edges included
  void onProgress(long done, long total);
}
