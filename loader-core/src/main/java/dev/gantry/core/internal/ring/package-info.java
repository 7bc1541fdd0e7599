// SPDX-License-Identifier: Apache-2.0
/// Prefetching: slots are filled ahead of the consumer, handed over in order, and filled again when their batch is
/// closed.
@NullMarked
package dev.gantry.core.internal.ring;

import org.jspecify.annotations.NullMarked;
