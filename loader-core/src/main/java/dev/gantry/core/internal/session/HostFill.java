// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/// Bytes that the CPU makes for a load, such as a tensor that must be decompressed.
///
/// @param bytes the number of bytes, 0 or more
/// @param writer writes all bytes into native memory of this size, on the loading thread
public record HostFill(long bytes, Consumer<MemorySegment> writer) {}
