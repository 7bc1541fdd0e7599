package dev.gantry.core.internal.ring;

import dev.gantry.core.TransferReport;
import java.time.Duration;

/// What a ring has done so far.
///
/// @param batches handed over
/// @param waits how often the consumer found no batch ready; the end, which it waits for too, is
///     not counted
/// @param waited how long it waited then, altogether
/// @param stalls how often readers had filled all slots, and found no free one: the consumer is
///     slower than they are
/// @param slotsReplaced slots whose memory was still in use when their batch was closed, and that
///     got other memory
/// @param hostBytes bytes that the CPU wrote
/// @param transfer bytes and reads by transport, since the ring was opened; its files are those that are
///     open at this moment
public record RingStatistics(
    long batches,
    long waits,
    Duration waited,
    long stalls,
    long slotsReplaced,
    long hostBytes,
    TransferReport transfer) {}
