// SPDX-License-Identifier: Apache-2.0
/// What a block of your own implements, so that a generator of texts can use it.
@NullMarked
package dev.gantry.models.spi;

import org.jspecify.annotations.NullMarked;
