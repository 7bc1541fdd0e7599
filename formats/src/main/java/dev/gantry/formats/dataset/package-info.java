/// Samples in files, and the batches that are made of them: what a batch holds, in which order,
/// and what has to be read for it.
@NullMarked
package dev.gantry.formats.dataset;

import org.jspecify.annotations.NullMarked;
