/// safetensors: which tensors a file or a sharded checkpoint holds, or is to hold, and where their
/// bytes lie. Metadata only; the bytes themselves are read and written elsewhere, by the extents
/// and sources given here.
@NullMarked
package dev.gantry.formats.internal.safetensors;

import org.jspecify.annotations.NullMarked;
