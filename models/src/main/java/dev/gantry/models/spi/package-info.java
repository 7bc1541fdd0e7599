// SPDX-License-Identifier: Apache-2.0
/// The interfaces that a block of your own implements, so that a generator of texts can use it.
@NullMarked
package dev.gantry.models.spi;

import org.jspecify.annotations.NullMarked;
