// SPDX-License-Identifier: Apache-2.0
/// Tests of GGUF files.
@NullMarked
package dev.gantry.formats.internal.gguf;

import org.jspecify.annotations.NullMarked;
