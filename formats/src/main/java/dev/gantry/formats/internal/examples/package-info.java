// SPDX-License-Identifier: Apache-2.0
/// The reading of `tf.train.Example` messages, with or without checks of unwanted features, and
/// their decoding into batches.
@NullMarked
package dev.gantry.formats.internal.examples;

import org.jspecify.annotations.NullMarked;
