// SPDX-License-Identifier: Apache-2.0
/// Strict JSON over a file's bytes, and what writes it.
@NullMarked
package dev.gantry.formats.internal.json;

import org.jspecify.annotations.NullMarked;
