// SPDX-License-Identifier: Apache-2.0
/// The blocks that compute what a description says: they know no file.
@NullMarked
package dev.gantry.models.internal.blocks;

import org.jspecify.annotations.NullMarked;
