// SPDX-License-Identifier: Apache-2.0
/// The public types of a transfer: which bytes it reads or writes, the memory that they go to, the
/// transport, and the failures.
@NullMarked
package dev.gantry.core;

import org.jspecify.annotations.NullMarked;
