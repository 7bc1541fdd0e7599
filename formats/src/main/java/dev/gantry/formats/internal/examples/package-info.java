// SPDX-License-Identifier: Apache-2.0
/// `tf.train.Example` messages: reads their features fast or completely, and decodes them into
/// batches.
@NullMarked
package dev.gantry.formats.internal.examples;

import org.jspecify.annotations.NullMarked;
