// SPDX-License-Identifier: Apache-2.0
/// The header of one NumPy array, which is a file or a member of an archive.
@NullMarked
package dev.gantry.formats.internal.npy;

import org.jspecify.annotations.NullMarked;
