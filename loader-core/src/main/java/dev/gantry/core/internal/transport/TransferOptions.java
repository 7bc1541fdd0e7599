// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.plan.PlanLimits;
import org.jspecify.annotations.Nullable;

/// The options of a load's or a ring's reads.
///
/// @param threads the number of reader threads, or 0 to have a number chosen for the device and
///     the machine. A reader that stages has two buffers of a request's size; in a ring, each
///     buffer has 64 KiB more. At most 16 threads of all loads and saves of a session stage at
///     once on a device. The loads and saves share these 16 evenly, and a reader without buffers
///     leaves its reads to the readers that have some
/// @param transport the only transport to use, or null to have the best one chosen for each file.
///     If this transport cannot serve, the load or ring fails
/// @param cachePolicy whether reads go through the page cache
/// @param progress called with the number of bytes that have been read
/// @param cancellation ends the transfer early when it is cancelled
/// @param slabCapacity the least memory that a load's slab takes on a device, in bytes, so that later slabs fit the
///     same memory
/// @param checksums the checksums to compare with the bytes; the bytes then pass through the CPU
///     and are staged instead of read by cuFile. Null to compare nothing
public record TransferOptions(
    PlanLimits limits,
    int threads,
    @Nullable Transport transport,
    CachePolicy cachePolicy,
    ProgressListener progress,
    Cancellation cancellation,
    long slabCapacity,
    @Nullable KnownChecksums checksums) {

  /// The most readers that one transfer may have.
  public static final int MAX_THREADS = 64;

  public TransferOptions {
    MisuseException.requireRange("optThreads", threads, 0, MAX_THREADS);
  }

  /// Options that leave every choice to Gantry, with a new cancellation each time.
  public static TransferOptions defaults() {
    return new TransferOptions(
        PlanLimits.DEFAULT,
        0,
        null,
        CachePolicy.BY_RESIDENCY,
        (_, _) -> {},
        new Cancellation(),
        0,
        null);
  }

  public TransferOptions withLimits(PlanLimits chosen) {
    return new TransferOptions(
        chosen, threads, transport, cachePolicy, progress, cancellation, slabCapacity, checksums);
  }

  public TransferOptions withThreads(int chosen) {
    return new TransferOptions(
        limits, chosen, transport, cachePolicy, progress, cancellation, slabCapacity, checksums);
  }

  public TransferOptions withTransport(@Nullable Transport chosen) {
    return new TransferOptions(
        limits, threads, chosen, cachePolicy, progress, cancellation, slabCapacity, checksums);
  }

  public TransferOptions withSlabCapacity(long chosen) {
    return new TransferOptions(
        limits, threads, transport, cachePolicy, progress, cancellation, chosen, checksums);
  }

  public TransferOptions withCachePolicy(CachePolicy chosen) {
    return new TransferOptions(
        limits, threads, transport, chosen, progress, cancellation, slabCapacity, checksums);
  }

  public TransferOptions withProgress(ProgressListener chosen) {
    return new TransferOptions(
        limits, threads, transport, cachePolicy, chosen, cancellation, slabCapacity, checksums);
  }

  public TransferOptions withCancellation(Cancellation chosen) {
    return new TransferOptions(
        limits, threads, transport, cachePolicy, progress, chosen, slabCapacity, checksums);
  }

  public TransferOptions withChecksums(@Nullable KnownChecksums chosen) {
    return new TransferOptions(
        limits, threads, transport, cachePolicy, progress, cancellation, slabCapacity, chosen);
  }
}
