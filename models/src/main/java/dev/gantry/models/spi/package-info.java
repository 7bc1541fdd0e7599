// SPDX-License-Identifier: Apache-2.0
/// The interfaces that your own block implements so that
/// [TextGenerator][dev.gantry.models.TextGenerator] can use it.
@NullMarked
package dev.gantry.models.spi;

import org.jspecify.annotations.NullMarked;
