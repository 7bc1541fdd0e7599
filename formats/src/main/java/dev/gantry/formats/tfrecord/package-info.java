// SPDX-License-Identifier: Apache-2.0
/// TFRecord files: their framing with its checksums, the `tf.train.Example` messages in them, and
/// batches of these.
@NullMarked
package dev.gantry.formats.tfrecord;

import org.jspecify.annotations.NullMarked;
