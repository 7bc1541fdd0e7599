// SPDX-License-Identifier: Apache-2.0
/// Programs over weights that another process keeps in memory.
@NullMarked
package dev.gantry.samples.resident;

import org.jspecify.annotations.NullMarked;
