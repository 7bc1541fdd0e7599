// SPDX-License-Identifier: Apache-2.0
/// GGUF, the files of llama.cpp: named tensors, many of them quantised in blocks, and notes that describe the model.
@NullMarked
package dev.gantry.formats.internal.gguf;

import org.jspecify.annotations.NullMarked;
