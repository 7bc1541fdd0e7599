// SPDX-License-Identifier: Apache-2.0
/// The operations of loads and commands on weights of any format: they find the format of a file,
/// read tensors that are not plain, and give tensors to a writer.
@NullMarked
package dev.gantry.formats.internal.weights;

import org.jspecify.annotations.NullMarked;
