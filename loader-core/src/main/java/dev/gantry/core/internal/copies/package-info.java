// SPDX-License-Identifier: Apache-2.0
/// Pairs of pinned buffers, and the copies between them and devices, on streams of their own.
@NullMarked
package dev.gantry.core.internal.copies;

import org.jspecify.annotations.NullMarked;
