// SPDX-License-Identifier: Apache-2.0
/// Sequential reading of a file's bytes, decompressed if needed, through a window of bounded
/// memory.
@NullMarked
package dev.gantry.formats.internal.source;

import org.jspecify.annotations.NullMarked;
