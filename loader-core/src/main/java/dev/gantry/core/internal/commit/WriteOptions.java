// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import org.jspecify.annotations.Nullable;

/// Says how files are written.
///
/// @param requestBytes the most bytes of one write, a multiple of 4096, at most 1 GiB; each writer
///     thread has two buffers of that size
/// @param threads writer threads, or 0 for the default
/// @param transport the only transport for device memory, or null to choose the best that serves. It is an
///     error if the only one cannot serve
/// @param pageCache whether to write through the page cache also if the file system takes direct I/O
/// @param checksums whether to compute the CRC32C of all that is written
/// @param progress is told how many bytes are written
/// @param cancellation ends the write early; no file changes then
public record WriteOptions(
    long requestBytes,
    int threads,
    @Nullable Transport transport,
    boolean pageCache,
    boolean checksums,
    ProgressListener progress,
    Cancellation cancellation) {

  /// The default is larger than for reads, which is a little faster on a disk (measured on an H200 host).
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

  /// Returns how many threads write at once. One thread keeps a disk busy while others make checksums and
  /// copies. Threads wait for the disk most of the time, so few processors are no reason for fewer threads
  /// (measured on a busy 2-core host).
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
