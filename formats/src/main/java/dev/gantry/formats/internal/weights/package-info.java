// SPDX-License-Identifier: Apache-2.0
/// Operations that loads and commands do with weights of any format: find the format of a file,
/// read tensors that are not plain, compare checksums, hand tensors to a writer.
@NullMarked
package dev.gantry.formats.internal.weights;

import org.jspecify.annotations.NullMarked;
