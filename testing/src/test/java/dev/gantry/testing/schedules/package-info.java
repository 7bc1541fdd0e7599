// SPDX-License-Identifier: Apache-2.0
/// Explores the schedules of a few threads over real classes, one after the other.
@NullMarked
package dev.gantry.testing.schedules;

import org.jspecify.annotations.NullMarked;
