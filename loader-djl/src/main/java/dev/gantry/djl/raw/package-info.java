// SPDX-License-Identifier: Apache-2.0
/// Reads and writes raw byte ranges of files, from and to existing memory.
@NullMarked
package dev.gantry.djl.raw;

import org.jspecify.annotations.NullMarked;
