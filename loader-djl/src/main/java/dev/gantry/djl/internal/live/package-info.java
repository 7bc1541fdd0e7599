// SPDX-License-Identifier: Apache-2.0

/// Keeps predictions and changes of the weights from running at the same time.
@NullMarked
package dev.gantry.djl.internal.live;

import org.jspecify.annotations.NullMarked;
