// SPDX-License-Identifier: Apache-2.0

/// Keeps predictors and changes of their weights apart.
@NullMarked
package dev.gantry.djl.internal.live;

import org.jspecify.annotations.NullMarked;
