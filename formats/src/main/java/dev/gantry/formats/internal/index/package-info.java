// SPDX-License-Identifier: Apache-2.0
/// The index of a TFRecord file: where in the file the values of its examples lie, so that they can
/// be read in any order, by any path, without being parsed. `docs/tfrecord-index.md` in the
/// source tree states its format.
@NullMarked
package dev.gantry.formats.internal.index;

import org.jspecify.annotations.NullMarked;
