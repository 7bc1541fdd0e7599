/// safetensors: which tensors a file or a sharded checkpoint holds, and where their bytes lie.
/// Metadata only; the bytes themselves are read elsewhere, from the extents given here.
@NullMarked
package dev.gantry.formats.safetensors;

import org.jspecify.annotations.NullMarked;
