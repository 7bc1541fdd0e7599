// SPDX-License-Identifier: Apache-2.0
/// DJL arrays over memory that Gantry owns, of any dtype of libtorch; and the memory of any DJL array.
@NullMarked
package dev.gantry.djl.internal.ndarray;

import org.jspecify.annotations.NullMarked;
