// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import org.jspecify.annotations.Nullable;

/// The options of writing files.
///
/// @param requestBytes the most bytes of one write, a multiple of 4096, at most 1 GiB; each writer
///     thread has two buffers of that size
/// @param threads writer threads, or 0 for the default
/// @param transport the only transport for device memory, or null to have the best one chosen. If
///     this transport cannot serve, the write fails
/// @param pageCache whether to write through the page cache also if the file system takes direct I/O
/// @param checksums whether to compute the CRC32C of all written bytes
/// @param progress called with the number of bytes that have been written
/// @param cancellation ends the write early when it is cancelled; no file changes then
public record WriteOptions(
    long requestBytes,
    int threads,
    @Nullable Transport transport,
    boolean pageCache,
    boolean checksums,
    ProgressListener progress,
    Cancellation cancellation) {

  /// The default size of a write. It is larger than for reads, because larger writes are a little
  /// faster on a disk (measured on an H200 host).
  private static final long DEFAULT_REQUEST_BYTES = 16L << 20;

  private static final int DEFAULT_WRITERS = 4;

  public WriteOptions {
    PlanLimits.checkRequestBytes(requestBytes);
    MisuseException.requireRange("optThreads", threads, 0, TransferOptions.MAX_THREADS);
  }

  /// Returns the default options: 16 MiB requests, past the page cache if possible, with checksums, and a new
  /// cancellation for each call.
  public static WriteOptions defaults() {
    return new WriteOptions(
        DEFAULT_REQUEST_BYTES, 0, null, false, true, (_, _) -> {}, new Cancellation());
  }

  /// Returns how many threads write at once. While one thread keeps the disk busy, other threads
  /// compute checksums and copy. Threads wait for the disk most of the time, so the number does
  /// not depend on the number of processors (measured on a busy 2-core host).
  int writers() {
    return threads > 0 ? threads : DEFAULT_WRITERS;
  }

  public WriteOptions withRequestBytes(long chosen) {
    return new WriteOptions(
        chosen, threads, transport, pageCache, checksums, progress, cancellation);
  }

  public WriteOptions withThreads(int chosen) {
    return new WriteOptions(
        requestBytes, chosen, transport, pageCache, checksums, progress, cancellation);
  }

  public WriteOptions withTransport(@Nullable Transport chosen) {
    return new WriteOptions(
        requestBytes, threads, chosen, pageCache, checksums, progress, cancellation);
  }

  public WriteOptions withPageCache(boolean chosen) {
    return new WriteOptions(
        requestBytes, threads, transport, chosen, checksums, progress, cancellation);
  }

  public WriteOptions withChecksums(boolean chosen) {
    return new WriteOptions(
        requestBytes, threads, transport, pageCache, chosen, progress, cancellation);
  }

  public WriteOptions withProgress(ProgressListener chosen) {
    return new WriteOptions(
        requestBytes, threads, transport, pageCache, checksums, chosen, cancellation);
  }

  public WriteOptions withCancellation(Cancellation chosen) {
    return new WriteOptions(
        requestBytes, threads, transport, pageCache, checksums, progress, chosen);
  }
}
