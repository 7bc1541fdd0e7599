// SPDX-License-Identifier: Apache-2.0
/// Reads bytes of files, whatever they mean, into existing memory, and writes them from it.
@NullMarked
package dev.gantry.djl.raw;

import org.jspecify.annotations.NullMarked;
