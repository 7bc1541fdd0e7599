// SPDX-License-Identifier: Apache-2.0
/// Reads a file's bytes in order, as they are or decompressed, through a window of bounded memory.
@NullMarked
package dev.gantry.formats.internal.source;

import org.jspecify.annotations.NullMarked;
