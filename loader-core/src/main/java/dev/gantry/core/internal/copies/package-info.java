// SPDX-License-Identifier: Apache-2.0
/// Pairs of pinned buffers, and queues of copies between these buffers and devices.
@NullMarked
package dev.gantry.core.internal.copies;

import org.jspecify.annotations.NullMarked;
