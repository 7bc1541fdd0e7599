// SPDX-License-Identifier: Apache-2.0
/// The tour: made-up weights, trainings that are killed, comparisons.
@NullMarked
package dev.gantry.cli.internal.demo;

import org.jspecify.annotations.NullMarked;
