// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.spi;

import org.jspecify.annotations.NullMarked;
