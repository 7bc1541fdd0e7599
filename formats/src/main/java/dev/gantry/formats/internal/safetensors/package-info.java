// SPDX-License-Identifier: Apache-2.0
/// safetensors: which tensors some data files hold, or will hold, and where their
/// bytes lie. Metadata only; the bytes themselves are read and written elsewhere, by the extents
/// and sources given here.
@NullMarked
package dev.gantry.formats.internal.safetensors;

import org.jspecify.annotations.NullMarked;
