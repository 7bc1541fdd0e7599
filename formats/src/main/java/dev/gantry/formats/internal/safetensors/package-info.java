// SPDX-License-Identifier: Apache-2.0
/// The safetensors format: which tensors data files hold or will hold, and where their bytes lie. This
/// package handles metadata; other packages read and write the tensors' bytes by the extents and sources
/// given here.
@NullMarked
package dev.gantry.formats.internal.safetensors;

import org.jspecify.annotations.NullMarked;
