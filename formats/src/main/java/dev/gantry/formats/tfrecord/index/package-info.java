/// The index of a TFRecord file: where in the file the values of its examples lie, so that they can
/// be read in any order, by any path, without being parsed. The form of its file is described in
/// `TFRECORD-INDEX.md`.
@NullMarked
package dev.gantry.formats.tfrecord.index;

import org.jspecify.annotations.NullMarked;
