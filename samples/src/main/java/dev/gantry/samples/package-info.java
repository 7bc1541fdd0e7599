// SPDX-License-Identifier: Apache-2.0
/// Programs to copy, one file each. Each runs by itself as its comment says; the documentation shows
/// parts of them. A copy in a project of your own needs no call of `Usage`.
@NullMarked
package dev.gantry.samples;

import org.jspecify.annotations.NullMarked;
