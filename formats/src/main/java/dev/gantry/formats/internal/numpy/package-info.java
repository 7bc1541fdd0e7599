// SPDX-License-Identifier: Apache-2.0
/// NumPy's files: `.npy`, one array each, and `.npz`, a ZIP archive of them.
@NullMarked
package dev.gantry.formats.internal.numpy;

import org.jspecify.annotations.NullMarked;
