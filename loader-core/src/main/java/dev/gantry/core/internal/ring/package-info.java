// SPDX-License-Identifier: Apache-2.0
/// Prefetch: slots that are filled ahead, handed over in order, and filled again when their batch
/// is closed.
@NullMarked
package dev.gantry.core.internal.ring;

import org.jspecify.annotations.NullMarked;
