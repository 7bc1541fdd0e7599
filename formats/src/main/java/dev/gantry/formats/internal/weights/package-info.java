// SPDX-License-Identifier: Apache-2.0
/// What loads and commands do with weights of any format: find the format of a file, read what is
/// not plain, compare checksums, hand tensors to a writer.
@NullMarked
package dev.gantry.formats.internal.weights;

import org.jspecify.annotations.NullMarked;
