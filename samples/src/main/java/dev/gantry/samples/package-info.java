// SPDX-License-Identifier: Apache-2.0
/// Programs to copy, one file each. Each runs by itself as its comment says; the documentation shows
/// parts of them.
@NullMarked
package dev.gantry.samples;

import org.jspecify.annotations.NullMarked;
