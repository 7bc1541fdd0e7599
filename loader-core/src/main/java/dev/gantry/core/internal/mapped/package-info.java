// SPDX-License-Identifier: Apache-2.0

/// `mapped`: files in the page cache, registered with the CUDA driver, from which a GPU fetches rows by
/// itself.
@NullMarked
package dev.gantry.core.internal.mapped;

import org.jspecify.annotations.NullMarked;
