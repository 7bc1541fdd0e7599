// SPDX-License-Identifier: Apache-2.0
/// Prefetching: readers fill slots ahead of the consumer, the consumer gets them in order, and
/// readers fill a slot again after the consumer has closed its batch.
@NullMarked
package dev.gantry.core.internal.ring;

import org.jspecify.annotations.NullMarked;
