// SPDX-License-Identifier: Apache-2.0
/// The seams for formats.
///
/// A weights format turns files into a catalogue of tensors, which says where each tensor's bytes
/// lie and how they are encoded. Loads, digests and conversions work on catalogues.
///
/// A sample format says which samples there are, which fields each has, and where the bytes of a
/// run of samples lie or who writes them. Datasets work on that.
@NullMarked
package dev.gantry.formats.spi;

import org.jspecify.annotations.NullMarked;
