// SPDX-License-Identifier: Apache-2.0
/// Queues copies between pinned buffers and devices, on streams of its own.
@NullMarked
package dev.gantry.core.internal.copies;

import org.jspecify.annotations.NullMarked;
