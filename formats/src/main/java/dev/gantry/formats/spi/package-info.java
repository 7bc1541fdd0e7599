/// The seam for weights formats: a format turns files into a catalogue of tensors, which says where
/// each tensor's bytes lie and how they are encoded. Loads, digests and conversions work on catalogues.
@NullMarked
package dev.gantry.formats.spi;

import org.jspecify.annotations.NullMarked;
